// A model directory that is replaced as a whole: a reader sees the old files or the new ones, never a mixture.
#pragma once

#include <filesystem>

namespace etc {

// Throws Error when the target exists and is neither empty nor a model directory, because it would be deleted. A model
// directory has config.json with a section "model", model.safetensors and no folders: so neither a run's folder nor one
// with somebody else's config.json and weights is taken for one.
void require_replaceable(const std::filesystem::path& target);

// A fresh folder under a temporary name beside the target. commit() syncs every file in it and swaps it with the target
// (which may or may not exist), then removes the old one. Without commit() the destructor removes the new one.
class AtomicFolder {
 public:
  // Throws Error unless the target is replaceable, or when there is no room beside it.
  explicit AtomicFolder(std::filesystem::path target);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  const std::filesystem::path& path() const { return temporary_; }  // where to write
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
};

}  // namespace etc
