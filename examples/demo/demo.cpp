// `make demo`: the whole way of an event, with processes that run, fail and die.
//
//     customers ──HTTP──▶ shop ──▶ shop.db ──▶ relay ──HTTP──▶ delivery ──▶ delivery.db
//     (this program)    (process)          (this program)      (process)
//
// The services are the examples shop and delivery. The steps come one after the other, so the
// screen reads the same each time. At the end both databases are compared, and each promise has a
// verdict.
//
//     demo                   exit code 0: every promise was kept
//     demo --without-inbox   the delivery service acts on every copy: see what breaks; exit code 1

#include <iostream>

#include "common/options.hpp"
#include "demo/story.hpp"

int main(int argc, char** argv) {
  try {
    const examples::Options options(argc, argv, {}, {"--without-inbox"});
    examples::demo::listen_to_signals();
    return examples::demo::Story(!options.has("--without-inbox")).tell() ? 0 : 1;
  } catch (const examples::demo::Interrupted&) {
    std::cerr << "demo: interrupted; its processes and its folder are gone\n";
    return 130;
  } catch (const examples::UsageError& error) {
    std::cerr << "demo: " << error.what() << ". Usage: demo [--without-inbox]\n";
    return 64;
  } catch (const std::exception& error) {
    std::cerr << "demo: " << error.what() << '\n';
    return 70;
  }
}
