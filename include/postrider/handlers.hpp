#pragma once
/// \file
/// C++ functions as handlers of jobs, bound by the job's name.
///
///     Handlers handlers;
///     handlers.inject<Mailer>(mailer);
///     handlers.bind("ship_order", [](const OrderPlaced& order, Attempt& attempt) { … });
///     handlers.bind("send_mail", [](const OrderPlaced& order, Mailer& mailer, LastAttempt last) {
///       if (!mailer.send(order)) throw RetryableError("mailer_busy");
///     });
///
/// A handler asks for what it needs by the types of its parameters, in any order:
///   - `const Event&`, or a type described by POSTRIDER_EVENT, which is decoded before the call;
///   - `DeliveryId`, `EventId`, `DispatchId`, `LastAttempt`, `std::stop_token`, `Attempt&`;
///   - a service, by reference: any other class, given to `inject`.
/// Anything else does not compile, unless it has a default argument and stands behind all others.
///
/// It returns nothing (done), a `JobOutcome`, or a `Result<void>`: an error of disposition `retry`
/// or `in_doubt` is a retry, any other one is final.
///
/// What it throws: `RetryableError` is a retry; everything else is final, reason handler_error, and
/// only the name of its type is kept, as its text may hold anybody's data.

#include <chrono>
#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <vector>

#include <postrider/attempt.hpp>
#include <postrider/clock.hpp>
#include <postrider/codec.hpp>
#include <postrider/event.hpp>
#include <postrider/ids.hpp>
#include <postrider/job.hpp>
#include <postrider/result.hpp>
#include <postrider/route.hpp>
#include <postrider/typed_event.hpp>

namespace postrider {

/// Thrown by a handler whose work may succeed later.
class RetryableError : public std::exception {
 public:
  /// The code is a short snake_case word without data of anybody. Without a delay the route's own
  /// retry delays count.
  explicit RetryableError(std::string code, std::optional<milliseconds> delay = std::nullopt)
      : code_(std::move(code)), delay_(delay) {}

  [[nodiscard]] const std::string& code() const noexcept { return code_; }
  [[nodiscard]] std::optional<milliseconds> delay() const noexcept { return delay_; }
  [[nodiscard]] const char* what() const noexcept override { return code_.c_str(); }

 private:
  std::string code_;
  std::optional<milliseconds> delay_;
};

/// What an exception of a handler means, by the rules above.
[[nodiscard]] JobOutcome job_outcome_of(const std::exception_ptr& thrown);
/// What the result of a handler means, by the rules above.
[[nodiscard]] JobOutcome job_outcome_of(const Result<void>& result);

/// Objects that handlers ask for by type. Borrowed; they must outlive every call.
class InjectedServices {
 public:
  template <class Service>
  void add(Service& service) {
    Entry entry;
    entry.readable = std::addressof(service);
    if constexpr (!std::is_const_v<Service>) entry.writable = std::addressof(service);
    entries_.insert_or_assign(typeid(Service), entry);
  }
  /// Whether a `Service&`, const or not, can be given.
  template <class Service>
  [[nodiscard]] bool has() const {
    const auto found = entries_.find(typeid(Service));
    if (found == entries_.end()) return false;
    return std::is_const_v<Service> || found->second.writable != nullptr;
  }
  /// Requires: `has<Service>()`.
  template <class Service>
  [[nodiscard]] Service& get() const {
    const auto& entry = entries_.at(typeid(Service));
    if constexpr (std::is_const_v<Service>) {
      return *static_cast<Service*>(entry.readable);
    } else {
      return *static_cast<Service*>(entry.writable);
    }
  }

 private:
  struct Entry {
    const void* readable = nullptr;
    void* writable = nullptr;  // null: it was given as const
  };
  std::map<std::type_index, Entry> entries_;
};

/// What the arguments of one call are made of. `task.event` is there.
struct HandlerCall {
  const Task& task;
  Attempt& attempt;
  const InjectedServices& services;
  const Codec& codec;
};

/// How the parameters of handlers are told apart. For `Handlers::bind` only.
namespace handler_parts {

template <class T>
struct IsScalar : std::bool_constant<std::same_as<T, Uuid>> {};
template <class T, class Tag>
struct IsScalar<Named<T, Tag>> : std::true_type {};
template <class... T>
struct IsScalar<std::basic_string<T...>> : std::true_type {};
template <class... T>
struct IsScalar<std::basic_string_view<T...>> : std::true_type {};
template <class... T>
struct IsScalar<std::chrono::time_point<T...>> : std::true_type {};
template <class T, class Period>
struct IsScalar<std::chrono::duration<T, Period>> : std::true_type {};
template <class T>
struct IsScalar<std::optional<T>> : std::true_type {};

/// Everything that comes with the task.
template <class T>
inline constexpr bool is_of_task =
    std::same_as<T, Event> || IntegrationEvent<T> || std::same_as<T, DeliveryId> ||
    std::same_as<T, EventId> || std::same_as<T, DispatchId> || std::same_as<T, LastAttempt> ||
    std::same_as<T, std::stop_token>;

template <class P>
inline constexpr bool is_read_only =
    !std::is_reference_v<P> ||
    (std::is_lvalue_reference_v<P> && std::is_const_v<std::remove_reference_t<P>>);

template <class P>
inline constexpr bool is_attempt = std::same_as<P, Attempt&>;

template <class P>
inline constexpr bool is_service =
    std::is_lvalue_reference_v<P>&& std::is_class_v<std::remove_reference_t<P>> &&
    !is_of_task<std::remove_cvref_t<P>> && !std::same_as<std::remove_cvref_t<P>, Attempt> &&
    !IsScalar<std::remove_cvref_t<P>>::value;

template <class P>
inline constexpr bool is_known =
    (is_of_task<std::remove_cvref_t<P>> && is_read_only<P>) || is_attempt<P> || is_service<P>;

/// Its own template, so that the compiler names the parameter.
template <class P>
struct CheckParameter {
  static_assert(is_known<P>,
                "POSTRIDER: a handler cannot ask for this parameter. Take the event as `const "
                "Event&` or as a type described by POSTRIDER_EVENT, DeliveryId, EventId, "
                "DispatchId, LastAttempt, Attempt&, std::stop_token, or an injected service by "
                "reference. Other scalars are no part of a task.");
};

template <class... P>
struct Parameters {
  static constexpr std::size_t count = sizeof...(P);
};

template <class Function>
struct Signature {};
template <class R, class... P>
struct Signature<R(P...)> {
  using Returned = R;
  using Taken = Parameters<P...>;
};
template <class R, class... P>
struct Signature<R (*)(P...)> : Signature<R(P...)> {};
template <class R, class... P>
struct Signature<R (*)(P...) noexcept> : Signature<R(P...)> {};
template <class R, class C, class... P>
struct Signature<R (C::*)(P...)> : Signature<R(P...)> {};
template <class R, class C, class... P>
struct Signature<R (C::*)(P...) noexcept> : Signature<R(P...)> {};
template <class R, class C, class... P>
struct Signature<R (C::*)(P...) const> : Signature<R(P...)> {};
template <class R, class C, class... P>
struct Signature<R (C::*)(P...) const noexcept> : Signature<R(P...)> {};
template <class Function>
requires requires {
  &Function::operator();
}
struct Signature<Function> : Signature<decltype(&Function::operator())> {};

template <class Function>
concept HasSignature = requires {
  typename Signature<Function>::Taken;
};

/// The first `Size` parameters.
template <std::size_t Size, class Whole, class... Front>
struct Prefix;
template <class First, class... Rest, class... Front>
struct Prefix<0, Parameters<First, Rest...>, Front...> {
  using type = Parameters<Front...>;
};
template <class... Front>
struct Prefix<0, Parameters<>, Front...> {
  using type = Parameters<Front...>;
};
template <std::size_t Size, class First, class... Rest, class... Front>
requires(Size > 0) struct Prefix<Size, Parameters<First, Rest...>, Front...>
    : Prefix<Size - 1, Parameters<Rest...>, Front..., First> {
};

template <class Function, class... P>
constexpr bool can_be_called(Parameters<P...> /*taken*/) {
  return (is_known<P> && ...) && std::is_invocable_v<const Function&, P...>;
}

/// How many parameters are given: all, or those before default arguments that are none of ours.
/// All as well when no number will do, so that the complaint is about the right one.
template <class Function, std::size_t Size = Signature<Function>::Taken::count>
constexpr std::size_t given_count() {
  using Whole = typename Signature<Function>::Taken;
  if constexpr (can_be_called<Function>(typename Prefix<Size, Whole>::type())) {
    return Size;
  } else if constexpr (Size == 0) {
    return Whole::count;
  } else {
    return given_count<Function, Size - 1>();
  }
}

template <class Function>
using Given = typename Prefix<given_count<Function>(), typename Signature<Function>::Taken>::type;

/// One argument, ready before the call.
template <class P>
class Argument {
 public:
  explicit Argument(const HandlerCall& call) : call_(call) {}
  [[nodiscard]] const Error* fault() const { return nullptr; }
  [[nodiscard]] decltype(auto) value() const {
    using T = std::remove_cvref_t<P>;
    if constexpr (std::same_as<T, Event>) {
      return (*call_.task.event);
    } else if constexpr (std::same_as<T, DeliveryId>) {
      return call_.attempt.delivery_id();
    } else if constexpr (std::same_as<T, EventId>) {
      return call_.attempt.event_id();
    } else if constexpr (std::same_as<T, DispatchId>) {
      return call_.attempt.dispatch_id();
    } else if constexpr (std::same_as<T, LastAttempt>) {
      return call_.attempt.last_attempt();
    } else if constexpr (std::same_as<T, std::stop_token>) {
      return call_.attempt.stop_token();
    } else if constexpr (std::same_as<T, Attempt>) {
      return (call_.attempt);
    } else {
      return call_.services.template get<std::remove_reference_t<P>>();
    }
  }

 private:
  const HandlerCall& call_;
};

template <class P>
requires IntegrationEvent<std::remove_cvref_t<P>>
class Argument<P> {
 public:
  using Typed = std::remove_cvref_t<P>;
  explicit Argument(const HandlerCall& call)
      : event_(decode_event<Typed>(call.task.event->type, call.task.event->payload, call.codec)) {}
  [[nodiscard]] const Error* fault() const { return event_.ok() ? nullptr : &event_.error(); }
  [[nodiscard]] const Typed& value() const { return *event_; }

 private:
  Result<Typed> event_;
};

[[nodiscard]] JobOutcome undecodable(const Error& error);

template <class Returned, class Call>
JobOutcome outcome_of_call(const Call& call) {
  if constexpr (std::is_void_v<Returned>) {
    call();
    return JobOutcome::done();
  } else if constexpr (std::same_as<Returned, JobOutcome>) {
    return call();
  } else {
    return job_outcome_of(call());
  }
}

template <class Function, class... P>
JobOutcome call_handler(const Function& function, const HandlerCall& call,
                        Parameters<P...> /*given*/) {
  const std::tuple<Argument<P>...> arguments{Argument<P>(call)...};
  const Error* fault = nullptr;
  std::apply(
      [&](const auto&... argument) {
        ((fault = fault == nullptr ? argument.fault() : fault), ...);
      },
      arguments);
  if (fault != nullptr) return undecodable(*fault);
  return std::apply(
      [&](const auto&... argument) {
        return outcome_of_call<typename Signature<Function>::Returned>(
            [&]() -> decltype(auto) { return std::invoke(function, argument.value()...); });
      },
      arguments);
}

/// A service that a handler asks for.
struct Need {
  std::type_index type;
  bool (*met)(const InjectedServices& services);
};

template <class P>
void add_need(std::vector<Need>& needs) {
  if constexpr (is_service<P>) {
    using Service = std::remove_reference_t<P>;
    needs.push_back({typeid(Service),
                     [](const InjectedServices& services) { return services.has<Service>(); }});
  }
}

template <class... P>
std::vector<Need> needs_of(Parameters<P...> /*given*/) {
  std::vector<Need> needs;
  (add_need<P>(needs), ...);
  return needs;
}

template <class... P>
constexpr bool check_parameters(Parameters<P...> /*given*/) {
  (static_cast<void>(CheckParameter<P>()), ...);
  return (is_known<P> && ...);
}

}  // namespace handler_parts

/// The handlers of a worker.
///
/// Thread safety: `run` and the other const functions from any thread; changes before that.
class Handlers {
 public:
  /// What an exception means; nothing: what `job_outcome_of` says. One that throws says nothing.
  using Classifier = std::function<std::optional<JobOutcome>(const std::exception_ptr& thrown)>;

  /// Ownership: borrows the codec that reads typed events, which must outlive it.
  explicit Handlers(const Codec& codec = json_codec()) : codec_(&codec) {}

  /// Binds a function to a job's name. Its attempts may run at the same time on several threads, so
  /// it has to be callable as const.
  ///
  /// Errors: in `validate`: a name that no job can have, or that is bound already.
  template <class Function>
  void bind(const std::string& job, Function function) {
    namespace parts = handler_parts;
    static_assert(parts::HasSignature<Function>,
                  "POSTRIDER: a handler is a function, or an object with one operator(), and the "
                  "types of its parameters are written out: `auto` says nothing of what it needs.");
    if constexpr (parts::HasSignature<Function>) {
      using Returned = typename parts::Signature<Function>::Returned;
      static_assert(std::is_void_v<Returned> || std::same_as<Returned, JobOutcome> ||
                        std::same_as<Returned, Result<void>>,
                    "POSTRIDER: a handler returns nothing, a postrider::JobOutcome or a "
                    "postrider::Result<void>.");
      if constexpr (parts::check_parameters(parts::Given<Function>())) {
        static_assert(parts::can_be_called<Function>(parts::Given<Function>()),
                      "POSTRIDER: a handler is called by several threads at once, so it must be "
                      "callable as const: leave out `mutable`, and guard what it shares.");
        if constexpr (parts::can_be_called<Function>(parts::Given<Function>())) {
          bind_call(
              job,
              [shared =
                   std::make_shared<const Function>(std::move(function))](const HandlerCall& call) {
                return parts::call_handler(*shared, call, parts::Given<Function>());
              },
              parts::needs_of(parts::Given<Function>()));
        }
      }
    }
  }

  /// Gives a service to every handler that asks for a `Service&` or `const Service&`; one given as
  /// const only to the latter. Name the type to inject an object as its interface:
  /// `inject<Mailer>(smtp_mailer)`.
  ///
  /// Ownership: borrowed; it must outlive every call. Thread safety of the service is its own.
  template <class Service>
  void inject(Service& service) {
    services_.add(service);
  }

  /// Replaces the rules for exceptions.
  void classify(Classifier classifier) { classifier_ = std::move(classifier); }

  /// Every fault at once, one sentence each: of names, and services that nobody has injected.
  [[nodiscard]] std::vector<std::string> validate() const;

  /// Where handlers and job routes do not agree, one sentence each: a route of one of these queues
  /// to whose job nothing is bound, a handler for no route. To be told at the start; neither
  /// prevents work, as routes and workers are deployed one after the other.
  [[nodiscard]] std::vector<std::string> disagreements(
      const std::vector<Route>& routes, const std::vector<std::string>& queues) const;

  /// Errors: `invalid_argument` when nothing is bound to the name.
  [[nodiscard]] Result<void> check_job(std::string_view job) const;
  [[nodiscard]] std::vector<std::string> jobs() const;

  /// How long a task waits that has come to a worker without a handler for it.
  static constexpr milliseconds no_handler_delay{15'000};

  /// Runs one attempt to its end, and turns whatever comes out into an outcome.
  ///
  /// A task without a handler is snoozed with the code no_handler: a worker of the new version will
  /// have one, and it uses no attempt until `JobOutcome::most_snoozes` is reached. A task whose
  /// event cannot be read fails: undecodable.
  /// Errors: none, and nothing is thrown.
  [[nodiscard]] JobOutcome run(const Task& task, Attempt& attempt) const noexcept;

 private:
  using Call = std::function<JobOutcome(const HandlerCall& call)>;
  struct Binding {
    Call call;
    std::vector<handler_parts::Need> needs;
  };

  void bind_call(const std::string& job, Call call, std::vector<handler_parts::Need> needs);
  [[nodiscard]] JobOutcome judge(const std::exception_ptr& thrown) const;

  const Codec* codec_;
  InjectedServices services_;
  std::map<std::string, Binding, std::less<>> bindings_;
  std::vector<std::string> faults_;
  Classifier classifier_;
};

}  // namespace postrider
