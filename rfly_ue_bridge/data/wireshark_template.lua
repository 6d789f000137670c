-- RflySim3D's UDP datagrams in Wireshark (tried with 4.0), written by `rfly dissector`. Put it among its plugins
-- (Help, About, Folders, Personal Lua Plugins), or say: wireshark -X lua_script:rflysim3d.lua
-- On other ports than the usual ones: Decode As, RFLYSIM.

local rflysim = Proto("rflysim", "RflySim3D")

local WINDOWS, LAN, ANSWERS = "20010-20073", 20009, 20006

local fields = {
  packet = ProtoField.string("rflysim.packet", "packet"),
  unknown = ProtoField.bytes("rflysim.unknown", "unknown"),
$fields
}
rflysim.fields = fields

-- name, offset, bytes of one element, elements, code as in Python's struct
local to_rflysim3d = {
$to
}

local from_rflysim3d = {
$answers
}

local function read(range, code)
  if code == "s" then
    return (range:string(ENC_UTF_8):match("^[^\0]*"))
  elseif code == "f" or code == "d" then
    return range:le_float()
  elseif code == "i" then
    return range:le_int()
  end
  return range:le_uint()
end

-- Length and checksum together make a packet.
local function find(range, declared)
  for _, packet in ipairs(declared) do
    if packet.size == range:len() then
      local _, offset, width = table.unpack(packet.fields[packet.mark])
      for _, checksum in ipairs(packet.checksums) do
        if range(offset, width):le_uint() == checksum then
          return packet
        end
      end
    end
  end
end

local function show_value(tree, range, field, index, label)
  local name, offset, each, _, code = table.unpack(field)
  local part = range(offset + (index - 1) * each, each)
  local item = tree:add(fields[name], part, read(part, code))
  if label then
    item:prepend_text(label)
  end
end

local function show_array(tree, range, field)
  local name, offset, each, count = table.unpack(field)
  local branch = tree:add(range(offset, each * count), string.format("%s: %d", name, count))
  for index = 1, count do
    show_value(branch, range, field, index, string.format("[%d] ", index - 1))
  end
end

-- Packets of whole fleets: a branch for each slot in use, so that what belongs together stands together.
local function show_fleet(tree, range, packet)
  local ids = packet.fields[2]
  local used = 0
  for slot = 1, ids[4] do
    local id = range(ids[2] + (slot - 1) * ids[3], ids[3]):le_uint()
    if id > 0 then
      used = used + 1
      local branch = tree:add(rflysim, range(ids[2] + (slot - 1) * ids[3], ids[3]), string.format("slot %d: id %d", slot - 1, id))
      for number = 2, #packet.fields do
        local field = packet.fields[number]
        local per_slot = field[4] / ids[4]
        for part = 1, per_slot do
          show_value(branch, range, field, (slot - 1) * per_slot + part)
        end
      end
    end
  end
  return used .. " vehicles"
end

local function show_packet(tree, range, packet)
  local branch = tree:add(rflysim, range(), "RflySim3D " .. packet.name)
  branch:add(fields.packet, range(), packet.name):set_generated()
  show_value(branch, range, packet.fields[1], 1)
  if packet.name:find("^Multi3D") then
    return packet.name .. " " .. show_fleet(branch, range, packet)
  end
  local told = packet.name
  for number = 2, #packet.fields do
    local field = packet.fields[number]
    if field[4] > 1 then
      show_array(branch, range, field)
    else
      show_value(branch, range, field, 1)
      local name = field[1]
      if name == "copterID" or name == "text" or name == "name" or name == "SeqID" then
        told = told .. " " .. tostring(read(range(field[2], field[3]), field[5]))
      end
    end
  end
  return told
end

-- Linux shows datagrams that were sent in one call (UDP_SEGMENT) as one: packets of one size behind each other.
local function cut(range, declared)
  for _, packet in ipairs(declared) do
    local size = packet.size
    if range:len() > size and range:len() % size == 0 then
      local all = true
      for start = 0, range:len() - size, size do
        all = all and find(range(start, size), declared) ~= nil
      end
      if all then
        return size
      end
    end
  end
end

function rflysim.dissector(buffer, pinfo, tree)
  local whole = buffer()
  local declared, others = to_rflysim3d, from_rflysim3d
  if pinfo.dst_port == ANSWERS then
    declared, others = others, declared
  end
  for _, list in ipairs({ declared, others }) do
    local size = find(whole, list) and whole:len() or cut(whole, list)
    if size then
      local told, count = "", 0
      for start = 0, whole:len() - size, size do
        local range = whole(start, size)
        local text = show_packet(tree, range, find(range, list))
        told, count = count == 0 and text or told, count + 1
      end
      pinfo.cols.protocol = "RflySim3D"
      pinfo.cols.info = count == 1 and told or string.format("%d datagrams as one: %s …", count, told)
      return whole:len()
    end
  end
  tree:add(rflysim, whole, "RflySim3D, no known packet"):add(fields.unknown, whole)
  pinfo.cols.protocol = "RflySim3D"
  pinfo.cols.info = string.format("no known packet (%d bytes)", whole:len())
  return whole:len()
end

local ports = DissectorTable.get("udp.port")
ports:add(WINDOWS, rflysim)
ports:add(LAN, rflysim)
ports:add(ANSWERS, rflysim)
