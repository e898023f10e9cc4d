#pragma once
/// \file
/// Typed events: a plain struct, described once, written and read as the payload of an event.
///
///     namespace shop {
///     struct OrderPlaced {
///       std::int64_t orderId = 0;
///       std::int64_t totalCents = 0;
///     };
///     POSTRIDER_EVENT(OrderPlaced, "order.placed", orderId, totalCents)
///     }  // namespace shop
///
///     outbox.add(db, *postrider::make_event(shop::OrderPlaced{1, 2500}, {{"order", "1"}}));
///
/// Three macros, each in the namespace of its type, after it, and after what it is made of:
///   - POSTRIDER_EVENT(Type, "name", fields…)  an event; the name is the contract between services,
///     so it does not change with the name of the type;
///   - POSTRIDER_STRUCT(Type, fields…)         an object inside events;
///   - POSTRIDER_ENUM(Type, enumerators…)      an enumeration that is written by name.
///
/// Every member has to be listed, each once, in any order: what is forgotten would vanish silently.
/// The compiler counts them, by binding the listed names to the members of the type: one that is
/// missing is the error "N names provided for structured binding, while 'Type' decomposes into M
/// elements". Static members are no members in this sense; private ones cannot be listed.
///
/// A member may be: std::string; an integer of 8 to 64 bits; float or double; bool; std::optional
/// of these (null when empty); an enum class (by its number, or by name if described); Timestamp
/// (text, RFC 3339 in UTC); a described struct; std::vector<T>; std::map<std::string, T>. Anything
/// else does not compile: `char` is text or a number, a pointer is somebody else's, a variant has
/// no name.
///
/// Never put secrets or personal data into an event: it is copied to every receiver, kept, and
/// shown to operators. `FieldDenyList` in postrider/codec.hpp refuses fields by name.

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <postrider/clock.hpp>
#include <postrider/codec.hpp>
#include <postrider/event.hpp>
#include <postrider/field_value.hpp>
#include <postrider/result.hpp>

namespace postrider {

/// A listed member.
template <class Type, class Member>
struct TypedField {
  std::string_view name;
  Member Type::*member;
};

template <class Enum>
struct NamedEnumerator {
  std::string_view name;
  Enum value;
};

template <class... Fields>
constexpr auto typed_fields(std::nullptr_t, Fields... fields) {
  return std::make_tuple(fields...);
}

/// Described by POSTRIDER_EVENT or POSTRIDER_STRUCT.
template <class T>
concept DescribedStruct = requires {
  postrider_fields(static_cast<const T*>(nullptr));
};
/// Described by POSTRIDER_ENUM.
template <class T>
concept DescribedEnum = requires {
  postrider_enumerators(static_cast<const T*>(nullptr));
};
/// Described by POSTRIDER_EVENT.
template <class T>
concept IntegrationEvent = DescribedStruct<T> && requires {
  postrider_event_name(static_cast<const T*>(nullptr));
};

/// Whether a member may have this type. Closed: only the specialisations below are true.
template <class T>
struct FieldType
    : std::bool_constant<std::same_as<T, std::string> || std::same_as<T, bool> ||
                         std::same_as<T, float> || std::same_as<T, double> ||
                         std::same_as<T, Timestamp> || DescribedStruct<T> || DescribedEnum<T>> {};
template <std::integral T>
requires(!std::same_as<T, char> && !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
         !std::same_as<T, char16_t> && !std::same_as<T, char32_t> && sizeof(T) <= 8 &&
         !std::is_const_v<T> && !std::is_volatile_v<T>) struct FieldType<T> : std::true_type {
};
template <class T>
requires(std::is_enum_v<T> && !DescribedEnum<T>)
    // Without `class` an enumeration may have no fixed width, and a number from outside no meaning.
    struct FieldType<T> : std::bool_constant<!std::is_convertible_v<T, std::underlying_type_t<T>> &&
                                             FieldType<std::underlying_type_t<T>>::value> {
};
template <class T>
struct FieldType<std::vector<T>> : FieldType<T> {};
template <class T>
struct FieldType<std::map<std::string, T>> : FieldType<T> {};
template <class T>
struct FieldType<std::optional<T>> : FieldType<T> {};
/// Two kinds of nothing would look the same.
template <class T>
struct FieldType<std::optional<std::optional<T>>> : std::false_type {};

template <class T>
inline constexpr bool is_field_type = FieldType<T>::value;

/// Not empty, at most 255 bytes, printable ASCII without spaces.
[[nodiscard]] constexpr bool is_event_name(std::string_view name) {
  if (name.empty() || name.size() > 255) return false;
  for (const char c : name) {
    if (c <= ' ' || c > '~') return false;
  }
  return true;
}

/// The error of a value inside a field: paths grow from the inside to "lines[2].price".
[[nodiscard]] Error in_field(std::string_view name, Error error);
[[nodiscard]] Error in_item(std::size_t index, Error error);
/// `problem` continues the path: "holds a number".
[[nodiscard]] Error field_error(std::string_view problem);

/// Begins the path of an error that is about the event as a whole.
[[nodiscard]] Error in_event(Error error);

[[nodiscard]] FieldValue to_field(Timestamp time);
[[nodiscard]] Result<Timestamp> timestamp_from(const FieldValue& value);
[[nodiscard]] Result<std::int64_t> signed_from(const FieldValue& value, std::int64_t least,
                                               std::int64_t most);
[[nodiscard]] Result<std::uint64_t> unsigned_from(const FieldValue& value, std::uint64_t most);
[[nodiscard]] Result<double> number_from(const FieldValue& value, double most);
[[nodiscard]] Result<bool> boolean_from(const FieldValue& value);
[[nodiscard]] Result<std::string> text_from(const FieldValue& value);
[[nodiscard]] Result<const FieldItems*> items_from(const FieldValue& value);
[[nodiscard]] Result<const FieldMembers*> members_from(const FieldValue& value);
/// Null when there is none.
[[nodiscard]] const FieldValue* find_member(const FieldMembers& members, std::string_view name);

/// One specialisation for each kind of type: `write` makes a value, `read` takes one apart.
template <class T>
struct FieldCodec {
  static_assert(is_field_type<T>,
                "POSTRIDER: an event cannot hold this type; see postrider/typed_event.hpp");

  static Result<FieldValue> write(const T& value) {
    if constexpr (std::same_as<T, Timestamp>) {
      return to_field(value);
    } else if constexpr (std::same_as<T, bool> || std::same_as<T, std::string>) {
      return FieldValue{value};
    } else if constexpr (std::floating_point<T>) {
      return FieldValue{FieldNumber{static_cast<double>(value), std::same_as<T, float>}};
    } else if constexpr (std::signed_integral<T>) {
      return FieldValue{static_cast<std::int64_t>(value)};
    } else {
      return FieldValue{static_cast<std::uint64_t>(value)};
    }
  }

  static Result<T> read(const FieldValue& value) {
    if constexpr (std::same_as<T, Timestamp>) {
      return timestamp_from(value);
    } else if constexpr (std::same_as<T, bool>) {
      return boolean_from(value);
    } else if constexpr (std::same_as<T, std::string>) {
      return text_from(value);
    } else if constexpr (std::floating_point<T>) {
      return narrow(number_from(value, static_cast<double>(std::numeric_limits<T>::max())));
    } else if constexpr (std::signed_integral<T>) {
      return narrow(
          signed_from(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    } else {
      return narrow(unsigned_from(value, std::numeric_limits<T>::max()));
    }
  }

 private:
  template <class Wide>
  static Result<T> narrow(Result<Wide> wide) {
    if (!wide) return std::move(wide).error();
    return static_cast<T>(*wide);
  }
};

template <class T>
struct FieldCodec<std::optional<T>> {
  static Result<FieldValue> write(const std::optional<T>& value) {
    if (!value) return FieldValue{};
    return FieldCodec<T>::write(*value);
  }
  static Result<std::optional<T>> read(const FieldValue& value) {
    if (std::holds_alternative<std::monostate>(value.content)) return std::optional<T>();
    auto read = FieldCodec<T>::read(value);
    if (!read) return std::move(read).error();
    return std::optional<T>(std::move(read).value());
  }
};

template <class T>
struct FieldCodec<std::vector<T>> {
  static Result<FieldValue> write(const std::vector<T>& list) {
    FieldItems items;
    for (std::size_t i = 0; i < list.size(); ++i) {
      auto item = FieldCodec<T>::write(list[i]);
      if (!item) return in_item(i, std::move(item).error());
      items.push_back(std::move(item).value());
    }
    return FieldValue{std::move(items)};
  }
  static Result<std::vector<T>> read(const FieldValue& value) {
    const auto items = items_from(value);
    if (!items) return items.error();
    std::vector<T> list;
    for (const auto& each : *items.value()) {
      auto item = FieldCodec<T>::read(each);
      if (!item) return in_item(list.size(), std::move(item).error());
      list.push_back(std::move(item).value());
    }
    return list;
  }
};

template <class T>
struct FieldCodec<std::map<std::string, T>> {
  static Result<FieldValue> write(const std::map<std::string, T>& map) {
    FieldMembers members;
    for (const auto& [name, each] : map) {
      auto member = FieldCodec<T>::write(each);
      if (!member) return in_field(name, std::move(member).error());
      members.push_back({name, std::move(member).value()});
    }
    return FieldValue{std::move(members)};
  }
  static Result<std::map<std::string, T>> read(const FieldValue& value) {
    const auto members = members_from(value);
    if (!members) return members.error();
    std::map<std::string, T> map;
    for (const auto& [name, each] : *members.value()) {
      auto member = FieldCodec<T>::read(each);
      if (!member) return in_field(name, std::move(member).error());
      map.emplace(name, std::move(member).value());
    }
    return map;
  }
};

template <class T>
requires(std::is_enum_v<T> && !DescribedEnum<T>) struct FieldCodec<T> {
  static_assert(
      is_field_type<T>,
      "POSTRIDER: an enumeration must be an enum class or be described by POSTRIDER_ENUM");
  using Number = std::underlying_type_t<T>;

  static Result<FieldValue> write(T value) {
    return FieldCodec<Number>::write(static_cast<Number>(value));
  }
  static Result<T> read(const FieldValue& value) {
    const auto number = FieldCodec<Number>::read(value);
    if (!number) return number.error();
    return static_cast<T>(*number);
  }
};

template <DescribedEnum T>
struct FieldCodec<T> {
  static Result<FieldValue> write(T value) {
    for (const auto& each : postrider_enumerators(static_cast<const T*>(nullptr))) {
      if (each.value == value) return FieldValue{std::string(each.name)};
    }
    return field_error("holds a number that has no name. List it in POSTRIDER_ENUM.");
  }
  static Result<T> read(const FieldValue& value) {
    const auto text = text_from(value);
    if (!text) return text.error();
    for (const auto& each : postrider_enumerators(static_cast<const T*>(nullptr))) {
      if (each.name == *text) return each.value;
    }
    return field_error("holds a name that POSTRIDER_ENUM does not list. Update the receiver.");
  }
};

template <DescribedStruct T>
struct FieldCodec<T> {
  static Result<FieldValue> write(const T& object) {
    FieldMembers members;
    std::optional<Error> failure;
    const auto add = [&](const auto& field) {
      auto member = codec_of(field).write(object.*field.member);
      if (!member) {
        failure = in_field(field.name, std::move(member).error());
        return false;
      }
      members.push_back({std::string(field.name), std::move(member).value()});
      return true;
    };
    for_each_field(add);
    if (failure) return *std::move(failure);
    return FieldValue{std::move(members)};
  }

  /// Members that the type does not know are passed over, so that a sender may add some. An
  /// optional one may be missing.
  static Result<T> read(const FieldValue& value) {
    const auto members = members_from(value);
    if (!members) return members.error();
    T object{};
    std::optional<Error> failure;
    const auto take = [&](const auto& field) {
      static const FieldValue nothing;
      const auto* const found = find_member(*members.value(), field.name);
      auto member = codec_of(field).read(found == nullptr ? nothing : *found);
      if (!member) {
        failure = in_field(
            field.name, found == nullptr ? field_error("is missing. Send it, or make it optional.")
                                         : std::move(member).error());
        return false;
      }
      object.*field.member = std::move(member).value();
      return true;
    };
    for_each_field(take);
    if (failure) return *std::move(failure);
    return object;
  }

 private:
  template <class Member>
  static FieldCodec<Member> codec_of(const TypedField<T, Member>&) {
    return {};
  }
  /// Until `visit` says false.
  template <class Visit>
  static void for_each_field(Visit visit) {
    std::apply([&](const auto&... field) { static_cast<void>((visit(field) && ...)); },
               postrider_fields(static_cast<const T*>(nullptr)));
  }
};

/// "order.placed"
template <IntegrationEvent T>
[[nodiscard]] constexpr std::string_view event_name() {
  return postrider_event_name(static_cast<const T*>(nullptr));
}

/// The event to give to an outbox. Errors: `invalid_argument` with the path of what cannot be
/// written; nothing has been sent to the database then, and its transaction goes on.
template <IntegrationEvent T>
[[nodiscard]] Result<NewEvent> make_event(const T& value,
                                          std::optional<Aggregate> aggregate = std::nullopt,
                                          const Codec& codec = json_codec()) {
  const auto fields = FieldCodec<T>::write(value);
  if (!fields) return in_event(fields.error());
  auto payload = codec.encode(*fields);
  if (!payload) return in_event(std::move(payload).error());
  NewEvent event;
  event.aggregate = std::move(aggregate);
  event.type = event_name<T>();
  event.payload = std::move(payload).value();
  event.content_type = codec.content_type();
  return event;
}

/// The error for an event of another type than the one asked for.
[[nodiscard]] Error wrong_event_type(std::string_view wanted, std::string_view given);

/// The way back, from what a message says its type is, and its payload. Errors: `invalid_argument`
/// for another type, with both names, and with the path of what does not fit; those of the codec.
template <IntegrationEvent T>
[[nodiscard]] Result<T> decode_event(std::string_view type, std::string_view payload,
                                     const Codec& codec = json_codec()) {
  if (type != event_name<T>()) return wrong_event_type(event_name<T>(), type);
  const auto fields = codec.decode(payload);
  if (!fields) return fields.error();
  auto value = FieldCodec<T>::read(*fields);
  if (!value) return in_event(std::move(value).error());
  return value;
}

}  // namespace postrider

// One expansion for each argument, up to about 80 of them. Source: C++20's __VA_OPT__ lets a macro
// stop by itself; each level of POSTRIDER_EXPAND rescans four times.
#define POSTRIDER_PARENTHESES ()
#define POSTRIDER_EXPAND(...) \
  POSTRIDER_EXPAND3(POSTRIDER_EXPAND3(POSTRIDER_EXPAND3(POSTRIDER_EXPAND3(__VA_ARGS__))))
#define POSTRIDER_EXPAND3(...) \
  POSTRIDER_EXPAND2(POSTRIDER_EXPAND2(POSTRIDER_EXPAND2(POSTRIDER_EXPAND2(__VA_ARGS__))))
#define POSTRIDER_EXPAND2(...) \
  POSTRIDER_EXPAND1(POSTRIDER_EXPAND1(POSTRIDER_EXPAND1(POSTRIDER_EXPAND1(__VA_ARGS__))))
#define POSTRIDER_EXPAND1(...) __VA_ARGS__
#define POSTRIDER_EACH(macro, type, ...) \
  __VA_OPT__(POSTRIDER_EXPAND(POSTRIDER_EACH_STEP(macro, type, __VA_ARGS__)))
#define POSTRIDER_EACH_STEP(macro, type, first, ...) \
  macro(type, first)                                 \
      __VA_OPT__(POSTRIDER_EACH_AGAIN POSTRIDER_PARENTHESES(macro, type, __VA_ARGS__))
#define POSTRIDER_EACH_AGAIN() POSTRIDER_EACH_STEP

#define POSTRIDER_CHECK_FIELD(Type, field)                                                     \
  static_assert(::postrider::is_field_type<decltype(Type::field)>,                             \
                "POSTRIDER: " #Type "::" #field                                                \
                " has a type that an event cannot hold. Use std::string, an integer, double, " \
                "bool, Timestamp, std::optional, std::vector, std::map<std::string, T>, an "   \
                "enum class, or a struct described by POSTRIDER_STRUCT.");
#define POSTRIDER_FIELD(Type, field)                       \
  , ::postrider::TypedField<Type, decltype(Type::field)> { \
#field, &Type::field                                   \
  }
#define POSTRIDER_ENUMERATOR(Type, enumerator) \
  ::postrider::NamedEnumerator<Type>{#enumerator, Type::enumerator},

#define POSTRIDER_STRUCT(Type, ...)                                                               \
  static_assert(::std::default_initializable<Type>,                                               \
                "POSTRIDER: " #Type                                                               \
                " needs a default constructor, to be filled when it is read.");                   \
  static_assert(__VA_OPT__(true ||)::std::is_empty_v<Type>,                                       \
                "POSTRIDER: no member of " #Type " is listed. List all of them.");                \
  POSTRIDER_EACH(POSTRIDER_CHECK_FIELD, Type, __VA_ARGS__)                                        \
  [[maybe_unused]] constexpr auto postrider_fields(const Type*) {                                 \
    return ::postrider::typed_fields(nullptr POSTRIDER_EACH(POSTRIDER_FIELD, Type, __VA_ARGS__)); \
  }                                                                                               \
  [[maybe_unused]] inline void postrider_every_member_is_listed(                                  \
      [[maybe_unused]] const Type& postrider_object) {                                            \
    __VA_OPT__([[maybe_unused]] const auto& [__VA_ARGS__] = postrider_object;)                    \
  }

#define POSTRIDER_EVENT(Type, name, ...)                                                     \
  static_assert(::postrider::is_event_name(name),                                            \
                "POSTRIDER: the name of an event has 1 to 255 printable ASCII characters."); \
  POSTRIDER_STRUCT(Type __VA_OPT__(, ) __VA_ARGS__)                                          \
  [[maybe_unused]] constexpr ::std::string_view postrider_event_name(const Type*) {          \
    return name;                                                                             \
  }

#define POSTRIDER_ENUM(Type, ...)                                      \
  [[maybe_unused]] constexpr auto postrider_enumerators(const Type*) { \
    return ::std::to_array<::postrider::NamedEnumerator<Type>>(        \
        {POSTRIDER_EACH(POSTRIDER_ENUMERATOR, Type, __VA_ARGS__)});    \
  }
