// The output of Progress on a terminal (bar, share, rate, remaining time, note) and in a file (lines).
#include "etc_core/base/progress.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <thread>

#include "etc_core/base/not_copied.h"
#include "tests/support/catch.h"

namespace {

using namespace std::chrono_literals;

// Redirects standard error to a pseudo-terminal while the object lives.
class Terminal : etc::NotCopied {
 public:
  Terminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    REQUIRE(master_ >= 0);
    REQUIRE(::grantpt(master_) == 0);
    REQUIRE(::unlockpt(master_) == 0);
    const int slave = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    REQUIRE(slave >= 0);
    saved_ = ::dup(STDERR_FILENO);
    ::dup2(slave, STDERR_FILENO);
    ::close(slave);
  }
  ~Terminal() {
    restore();
    ::close(master_);
  }

  void restore() {
    if (saved_ < 0) return;
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
    saved_ = -1;
  }

  // 0: unknown.
  void set_columns(unsigned short columns) {
    struct winsize size {};
    size.ws_row = 24;
    size.ws_col = columns;
    REQUIRE(::ioctl(master_, TIOCSWINSZ, &size) == 0);
  }

  std::string shown() {
    std::string text;
    struct pollfd waiting {};
    waiting.fd = master_;
    waiting.events = POLLIN;
    char block[512];
    while (::poll(&waiting, 1, 0) > 0 && (waiting.revents & POLLIN) != 0) {
      const ssize_t got = ::read(master_, block, sizeof block);
      if (got <= 0) break;
      text.append(block, static_cast<std::size_t>(got));
    }
    return text;
  }

 private:
  int master_, saved_ = -1;
};

}  // namespace

TEST_CASE("progress on a terminal shows bar, rate, remaining time and the loss", "[base]") {
  std::string during, end;
  {
    Terminal terminal;
    {
      etc::Progress bar("train", 100, "steps");
      bar.update(1, "loss 2.5000");
      std::this_thread::sleep_for(110ms);
      bar.update(50, "loss 1.2500");
      during = terminal.shown();
      bar.update(100, "loss 0.7500");
    }
    end = terminal.shown();
    terminal.restore();
  }
  CAPTURE(during, end);
  CHECK_THAT(during, Catch::Contains("train [############............] 50/100 steps, "));
  CHECK_THAT(during, Catch::Contains(" steps/s, 0:0") && Catch::Contains(" left, loss 1.2500"));
  CHECK_THAT(end, Catch::Contains("100/100 steps, ") && Catch::Contains("loss 0.7500"));
}

TEST_CASE("what was done before does not count as speed", "[base]") {
  std::string text;
  {
    Terminal terminal;
    {
      etc::Progress bar("train", 1000, "steps", 900);
      std::this_thread::sleep_for(110ms);
      bar.update(910);
    }
    text = terminal.shown();
    terminal.restore();
  }
  // 10 steps took a little more than a tenth of a second.
  const std::size_t end = text.rfind(" steps/s");
  REQUIRE(end != std::string::npos);
  const double rate = std::stod(text.substr(text.rfind(", ", end) + 2));
  CAPTURE(text);
  CHECK(rate > 0.1);
  CHECK(rate < 95);
}

TEST_CASE("a line of progress is shortened to the columns there are now", "[base]") {
  std::map<unsigned short, std::string> drawn;
  {
    Terminal terminal;
    {
      etc::Progress bar("train", 100, "steps");
      std::this_thread::sleep_for(1ms);
      for (const unsigned short columns : {200, 80, 60, 50, 30, 20, 6, 1, 0}) {
        terminal.set_columns(columns);
        bar.announce(50, "loss 1.2500");
        drawn[columns] = terminal.shown();
      }
      terminal.set_columns(40);
    }
    drawn[40] = terminal.shown();
    terminal.restore();
  }
  for (auto& [columns, text] : drawn) {
    CAPTURE(columns, text);
    REQUIRE(text.starts_with("\r\033[K"));
    text.erase(0, 4);
    if (columns == 40) {
      REQUIRE(text.ends_with("\r\n"));  // the last one; the terminal makes \r\n of \n
      text.resize(text.size() - 2);
    }
    CHECK(text.find('\n') == std::string::npos);
    if (columns > 0) CHECK(text.size() < columns);
  }
  CHECK_THAT(drawn[200], Catch::StartsWith("train [############............] 50/100 steps, "));
  CHECK_THAT(drawn[200], Catch::EndsWith(", loss 1.2500"));
  CHECK_THAT(drawn[0], Catch::StartsWith("train [############............] 50/100 steps, "));
  CHECK_THAT(drawn[80], Catch::Contains("#") && Catch::EndsWith(", loss 1.2500"));
  CHECK_THAT(drawn[50], Catch::StartsWith("train 50/100 steps, ") || Catch::StartsWith("train [#"));
  CHECK_THAT(drawn[30], Catch::StartsWith("train 50/100 steps"));
  CHECK_THAT(drawn[20], Catch::StartsWith("train 50/100 steps"));
  CHECK(drawn[6] == "train");
  CHECK(drawn[1].empty());
}

TEST_CASE("rates are plain numbers of three digits", "[base]") {
  CHECK(etc::rate_text(1140.3) == "1140");
  CHECK(etc::rate_text(123456.7) == "123457");
  CHECK(etc::rate_text(114) == "114");
  CHECK(etc::rate_text(99.97) == "100");
  CHECK(etc::rate_text(11.44) == "11.4");
  CHECK(etc::rate_text(5) == "5");
  CHECK(etc::rate_text(0.042) == "0.042");
  CHECK(etc::rate_text(0.00001234) == "0.0000123");
  CHECK(etc::rate_text(0) == "0");
}

TEST_CASE("what takes long is announced at once, on a file as well", "[base]") {
  FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(::fileno(file), STDERR_FILENO);
  {
    etc::Progress bar("benchmark", 3, "points");
    bar.announce(0, "L=4096");
    bar.update(1, "L=4096");  // not written: a file gets at most one line in ten seconds
    bar.announce(1, "L=8192");
  }
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  char text[512] = {};
  std::rewind(file);
  CHECK(std::fread(text, 1, sizeof text - 1, file) > 0);
  std::fclose(file);
  CHECK_THAT(text, Catch::StartsWith("benchmark 0/3 points, L=4096\nbenchmark 1/3 points, "));
  CHECK_THAT(text, Catch::Contains(" left, L=8192\n"));
}
