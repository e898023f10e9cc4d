#include <random>

#include <postrider/clock.hpp>

namespace postrider {
namespace {

class MersenneRandom final : public Random {
 public:
  explicit MersenneRandom(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;  // its sequence is fixed by the standard: the same on every machine
};

}  // namespace

std::unique_ptr<Random> system_random() {
  std::random_device device;
  const std::uint64_t high = device();
  return seeded_random(high << 32U | device());
}

std::unique_ptr<Random> seeded_random(std::uint64_t seed) {
  return std::make_unique<MersenneRandom>(seed);
}

}  // namespace postrider
