// Arrays passed between the library and NumPy without a copy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

namespace etc::python {

namespace nb = nanobind;

// An array on memory owned by `owner`: a capsule holds a copy of `owner` until the array and all its views are gone.
template <typename Number, typename Owner>
nb::object array_of(Number* data, std::initializer_list<std::size_t> shape, Owner owner) {
  auto kept = std::make_unique<Owner>(std::move(owner));
  const nb::capsule capsule(kept.get(), [](void* held) noexcept { delete static_cast<Owner*>(held); });
  kept.release();
  return nb::cast(nb::ndarray<nb::numpy, Number>(data, shape.size(), shape.begin(), capsule));
}

// The vector's memory as an array [n], without a copy.
template <typename Number>
nb::object array_of(std::vector<Number> numbers) {
  const auto owner = std::make_shared<std::vector<Number>>(std::move(numbers));
  return array_of(owner->data(), {owner->size()}, owner);
}

// Contiguous numbers of the caller, read in place. No conversion: longetc/__init__.py has already done it.
template <typename Number>
using Input = nb::ndarray<const Number, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

}  // namespace etc::python
