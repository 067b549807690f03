// What progress looks like on a terminal: bar, share, rate, remaining time and the note; on a file, lines.
#include "etc_core/base/progress.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <thread>

#include "tests/support/catch.h"

namespace {

using namespace std::chrono_literals;

// Standard error as a terminal of our own for as long as it lives.
class Terminal {
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
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void restore() {
    if (saved_ < 0) return;
    ::dup2(saved_, STDERR_FILENO);
    ::close(saved_);
    saved_ = -1;
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
  // 10 steps in a little more than a tenth of a second.
  const std::size_t end = text.rfind(" steps/s");
  REQUIRE(end != std::string::npos);
  const double rate = std::stod(text.substr(text.rfind(", ", end) + 2));
  CAPTURE(text);
  CHECK(rate > 0.1);
  CHECK(rate < 95);
}
