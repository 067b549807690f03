// Constants of the zip format (PKWARE's APPNOTE, sections 4.3 and 4.4) that reader and writer share.
#pragma once

#include <cstdint>

namespace etc::convert::zip {

constexpr std::uint32_t kLocalHeader = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50;  // signatures
constexpr std::uint16_t kStored = 0, kDeflated = 8;                                         // compression methods

}  // namespace etc::convert::zip
