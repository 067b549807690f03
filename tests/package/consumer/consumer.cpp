// Pieces of a text by a vocabulary, and the message for one that is not there.
#include <etc/longetc.h>

#include <cstdio>

int main(int, char** words) {
  const longetc::Tokenizer tokenizer(words[1]);
  std::printf("%s %s %zu\n", longetc::version(), tokenizer.kind().c_str(), tokenizer.encode({words[2]}).ids.size());
  try {
    longetc::Model model(words[3]);
  } catch (const longetc::Error& error) {
    std::printf("%s\n", error.what());
  }
}
