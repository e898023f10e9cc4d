// chaos-proxy LISTEN_PORT TARGET_PORT CONTROL_SOCKET
//
// Runs until it is told `end`. Commands are in chaos_proxy.hpp; one is sent for example by
//
//   echo 'down hold' | socat - UNIX-CONNECT:CONTROL_SOCKET

#include <cstdlib>
#include <exception>
#include <iostream>

#include "servers/chaos_proxy.hpp"

int main(int count, char** arguments) {
  if (count != 4) {
    std::cerr << "usage: chaos-proxy LISTEN_PORT TARGET_PORT CONTROL_SOCKET\n";
    return 64;
  }
  try {
    postrider::testing::ChaosProxyServer proxy(std::atoi(arguments[1]),  // NOLINT(cert-err34-c)
                                               std::atoi(arguments[2]),  // NOLINT(cert-err34-c)
                                               arguments[3]);
    std::cout << "listening on 127.0.0.1:" << proxy.port() << std::endl;
    proxy.run();
  } catch (const std::exception& failure) {
    std::cerr << failure.what() << "\n";
    return 69;
  }
  return 0;
}
