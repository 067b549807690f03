// Numbers that pass between the library and NumPy without a copy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace etc::python {

namespace nb = nanobind;

// An array on memory that `owner` keeps: a capsule holds a copy of it until the array, and all its views, are gone.
template <typename Number, typename Owner>
nb::object array_of(Number* data, std::initializer_list<std::size_t> shape, Owner owner) {
  auto kept = std::make_unique<Owner>(std::move(owner));
  const nb::capsule capsule(kept.get(), [](void* held) noexcept { delete static_cast<Owner*>(held); });
  kept.release();
  return nb::cast(nb::ndarray<nb::numpy, Number>(data, shape.size(), shape.begin(), capsule));
}

// The vector's own memory as an array [n].
template <typename Number>
nb::object array_of(std::vector<Number> numbers) {
  const auto owner = std::make_shared<std::vector<Number>>(std::move(numbers));
  return array_of(owner->data(), {owner->size()}, owner);
}

// Contiguous numbers of the caller's, read where they are. Nothing is converted: longetc/__init__.py has done that.
template <typename Number>
using Input = nb::ndarray<const Number, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

}  // namespace etc::python
