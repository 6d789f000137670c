// Copyright 2026 rfly_suite maintainers
// SPDX-License-Identifier: Apache-2.0

// Contacts of moving boxes with coal 3, as its users in C++ write them: for `bench_collision.py`.
// A step sets all poses, brings the tree of bounds up to date and collides all boxes with all.
#include <cstdint>
#include <memory>
#include <vector>

#include <coal/broadphase/broadphase_dynamic_AABB_tree.h>
#include <coal/collision.h>
#include <coal/shape/geometric_shapes.h>

namespace {

// Exact test of two boxes whose bounds overlap; it notes their numbers and the contact.
struct Contacts : coal::CollisionCallBackBase {
  coal::CollisionRequest request{coal::CONTACT, 1};
  const coal::CollisionObject* first = nullptr;
  int64_t* pairs = nullptr;
  double* places = nullptr;
  int64_t count = 0;
  int64_t most = 0;

  bool collide(coal::CollisionObject* a, coal::CollisionObject* b) override {
    coal::CollisionResult result;
    if (coal::collide(a, b, request, result) == 0) return false;
    if (count < most) {
      const coal::Contact& contact = result.getContact(0);
      pairs[2 * count] = a - first;
      pairs[2 * count + 1] = b - first;
      double* place = places + 7 * count;
      for (int axis = 0; axis < 3; ++axis) {
        place[axis] = contact.pos[axis];
        place[3 + axis] = contact.normal[axis];
      }
      place[6] = contact.penetration_depth;
    }
    ++count;
    return false;  // go on with the other pairs
  }
};

struct Scene {
  std::vector<coal::CollisionObject> boxes;
  coal::DynamicAABBTreeCollisionManager tree;
  Contacts contacts;
};

}  // namespace

extern "C" {

void* new_boxes(int64_t count, const double* size) {
  auto* scene = new Scene;
  auto box = std::make_shared<coal::Box>(size[0], size[1], size[2]);
  box->computeLocalAABB();
  scene->boxes.reserve(count);
  for (int64_t k = 0; k < count; ++k) scene->boxes.emplace_back(box, false);
  scene->contacts.first = scene->boxes.data();
  return scene;
}

// Poses: position (count, 3), quaternion x, y, z, w (count, 4). Returns the number of contacts.
int64_t contacts_of(void* boxes, const double* position, const double* quat, int64_t* pairs,
                    double* places, int64_t most) {
  Scene& scene = *static_cast<Scene*>(boxes);
  for (coal::CollisionObject& box : scene.boxes) {
    const Eigen::Quaterniond turned(quat[3], quat[0], quat[1], quat[2]);
    box.setTransform(turned.toRotationMatrix(), coal::Vec3s(position[0], position[1], position[2]));
    box.computeAABB();
    position += 3;
    quat += 4;
  }

  // the first tree is built from all boxes, which balances it
  if (scene.tree.empty()) {
    std::vector<coal::CollisionObject*> all;
    for (coal::CollisionObject& box : scene.boxes) all.push_back(&box);
    scene.tree.registerObjects(all);
  }
  scene.tree.update();

  scene.contacts.pairs = pairs;
  scene.contacts.places = places;
  scene.contacts.most = most;
  scene.contacts.count = 0;
  scene.tree.collide(&scene.contacts);
  return scene.contacts.count;
}

}  // extern "C"
