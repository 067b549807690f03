// The families of foreign_encoder.h; each is implemented in a separate file.
#pragma once

#include <string>
#include <string_view>

#include "etc_core/checkpoint/convert/dense/foreign_encoder.h"

namespace etc::convert {

ForeignEncoder nezha_encoder(const Json& json, const std::string& where, const TensorSource& source);
ForeignEncoder xlnet_encoder(const Json& json, const std::string& where);
ForeignEncoder t5_encoder(const Json& json, const std::string& where, const TensorSource& source);

// The layer in a name of the form prefix, number, dot, rest: "layer.7.ff.bias" → 7, and rest "ff.bias". -1: the name
// does not have this form.
std::int64_t numbered(std::string_view name, std::string_view prefix, std::string_view& rest);

// "bert/encoder/layer_7/"
std::string dense_layer(std::int64_t layer);

// The dense encoder's name for an activation of `transformers`, whose gelu is the erf form. Throws UsageError naming
// the key when a dense encoder does not have it.
std::string hub_activation(const std::string& name, const std::string& where, const std::string& key);

}  // namespace etc::convert
