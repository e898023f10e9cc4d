#pragma once
/// \file
/// What the handlers of these cases are made of.

#include <string>

#include <postrider/handlers.hpp>

struct Mailer {};
