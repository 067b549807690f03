#include "tests/support/sentencepiece_model.h"

#include <cstring>

#include "etc_core/base/varint.h"

namespace etc::test {

namespace {

std::string varint(std::uint64_t value) {
  std::string bytes;
  append_varint(bytes, value);
  return bytes;
}

std::string number_field(int number, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(number) << 3) + varint(value);
}

std::string bytes_field(int number, std::string_view bytes) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

template <typename T>
std::string little_endian(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

}  // namespace

std::string sentencepiece_model(const std::vector<ModelPiece>& pieces, std::string_view character_map) {
  std::string model;
  for (const ModelPiece& piece : pieces) {
    model += bytes_field(1, bytes_field(1, piece.text) + varint(2 << 3 | 5) + little_endian(piece.score) +
                                number_field(3, static_cast<std::uint64_t>(piece.type)));
  }
  std::string normalizer = bytes_field(1, "by hand");
  if (!character_map.empty()) normalizer += bytes_field(2, character_map);
  return model + bytes_field(3, normalizer);
}

std::string character_map(unsigned char from, const std::string& to) {
  // The root's children are units 256 … 511, the rule's leaf is unit 512.
  constexpr std::uint32_t kRoot = 256, kLeaf = 512;
  std::vector<std::uint32_t> units(768, 0);
  const std::uint32_t edge = kRoot ^ from;
  units[0] = kRoot << 10;
  units[edge] = (edge ^ kLeaf) << 10 | 1u << 8 | from;
  units[kLeaf] = 0x80000000u;  // the replacement begins at byte 0
  std::string map = little_endian(static_cast<std::uint32_t>(4 * units.size()));
  for (const std::uint32_t unit : units) map += little_endian(unit);
  return map + to + '\0';
}

std::string small_sentencepiece_model() {
  std::vector<ModelPiece> pieces = {{"<unk>", 0, PieceType::unknown},
                                    {"<s>", 0, PieceType::control},
                                    {"</s>", 0, PieceType::control},
                                    {"\u2581", -3},
                                    {"\u2581the", -4},
                                    {"\u25812018,", -4},
                                    {"000,", -4},
                                    {"\u2581x", -4},
                                    {",", -3}};
  for (const char c : std::string("abcdehiostx0123456789")) pieces.push_back({std::string(1, c), -6});
  return sentencepiece_model(pieces);
}

}  // namespace etc::test
