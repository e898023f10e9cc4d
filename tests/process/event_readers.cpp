#include "process/event_readers.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "conformance/common_builders.hpp"

namespace postrider::testing {
namespace {

namespace pg = store::postgres;

constexpr std::size_t rows_per_look = 1000;

/// Of what this reads there is one server only.
const pg::ServerIdentity same_server{"1", 1};

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(describe(result.error()));
  return std::move(result).value();
}

/// `numbers` as an array literal.
template <class Range, class Number>
std::string array_of(const Range& range, Number number) {
  std::string text;
  for (const auto& item : range)
    text += (text.empty() ? "" : ",") + std::to_string(number(item));
  return "'{" + text + "}'";
}

std::string rows_above(std::int64_t position) {
  return "(SELECT e.seq::text FROM outbox_events AS e WHERE e.seq > " + std::to_string(position) +
         " ORDER BY e.seq LIMIT " + std::to_string(rows_per_look) + ")";
}

constexpr const char* snapshot_row = "SELECT pg_current_snapshot()::text";

/// The answer to a statement that begins with `snapshot_row`.
pg::Snapshot take_snapshot(std::vector<std::string>& rows) {
  auto snapshot = must(pg::parse_snapshot(rows.at(0)));
  rows.erase(rows.begin());
  return snapshot;
}

std::vector<std::int64_t> ascending(const std::vector<std::string>& rows) {
  std::vector<std::int64_t> seqs;
  for (const auto& row : rows)
    seqs.push_back(std::stoll(row));
  std::sort(seqs.begin(), seqs.end());
  return seqs;
}

std::uint64_t next_xid_of(PostgresSession& session, const pg::Snapshot& snapshot) {
  return pg::next_xid(snapshot, std::stoi(session.run("SELECT age('3'::xid)")));
}

/// The plans that the product reads with, whatever the statistics of a young table say.
void tune(PostgresSession& session) {
  session.run("SET enable_seqscan = off");
}

}  // namespace

void EventReader::see(std::int64_t seq) {
  if (!seen_.insert(seq).second) ++repeats_;
}

StoreReader::StoreReader(std::unique_ptr<Store> store) : store_(std::move(store)) {
  for (std::int32_t i = 0; i < store_->traits().partitions; ++i)
    request_.partitions.emplace_back(i);
  request_.after = {ReadMark()};
  request_.limit = rows_per_look;
  request_.bytes = 64U << 20U;
}

bool StoreReader::look() {
  const auto batch = must(store_->claim(request_, soon()));
  request_.after = {batch.mark};
  for (const auto& claimed : batch.events)
    see(claimed.event->seq.value());
  return !batch.events.empty();
}

ListReader::ListReader(const std::string& conninfo) : session_(conninfo) {
  tune(session_);
}

bool ListReader::look() {
  auto answer = ask();
  pg::ReadStep step;
  step.next_xid = horizon(answer.snapshot);
  step.snapshot = std::move(answer.snapshot);
  step.last_seq = position_.seq;
  for (const auto seq : answer.seqs) {
    see(seq);
    step.last_seq = std::max(step.last_seq, seq);
  }
  position_ = pg::advance(position_, step, same_server);
  return !answer.seqs.empty();
}

std::string ListReader::rows_statement() const {
  const auto first = array_of(position_.in_flight, [](const auto& range) { return range.first; });
  const auto last = array_of(position_.in_flight, [](const auto& range) { return range.last; });
  return "SELECT e.seq::text FROM unnest(" + first + "::xid8[], " + last +
         "::xid8[]) AS f (first, last) JOIN outbox_events AS e ON e.xid BETWEEN f.first AND f.last "
         "WHERE e.seq <= " +
         std::to_string(position_.seq) + " UNION ALL " + rows_above(position_.seq);
}

ListReader::Answer ListReader::ask() {
  auto rows = session_.rows(std::string(snapshot_row) + " UNION ALL " + rows_statement());
  auto snapshot = take_snapshot(rows);
  return {std::move(snapshot), ascending(rows)};
}

std::uint64_t ListReader::horizon(const pg::Snapshot& snapshot) {
  return next_xid_of(session_, snapshot);
}

std::uint64_t ListWithoutHorizon::horizon(const pg::Snapshot& snapshot) {
  return snapshot.xmax;
}

ListReader::Answer RowsBeforeSnapshot::ask() {
  const auto seqs = ascending(session().rows(rows_statement()));
  in_between();
  auto rows = session().rows(snapshot_row);
  return {take_snapshot(rows), seqs};
}

GapReader::GapReader(const std::string& conninfo) : session_(conninfo) {
  tune(session_);
}

std::string GapReader::statement() const {
  const auto missing = array_of(gaps_, [](const auto& gap) { return gap.first; });
  return std::string(snapshot_row) +
         " UNION ALL SELECT seq::text FROM outbox_events WHERE seq = ANY (" + missing +
         "::bigint[]) UNION ALL " + rows_above(position_);
}

bool GapReader::look() {
  auto rows = session_.rows(statement());
  const auto snapshot = take_snapshot(rows);
  std::vector<std::int64_t> missing;
  take(ascending(rows), missing);
  give_up(snapshot);
  if (!missing.empty()) {
    const auto mark = stamp(snapshot);
    for (const auto seq : missing)
      gaps_.emplace(seq, mark);
  }
  return !rows.empty();
}

void GapReader::take(const std::vector<std::int64_t>& seqs, std::vector<std::int64_t>& missing) {
  for (const auto seq : seqs) {
    see(seq);
    gaps_.erase(seq);
    if (seq <= position_) continue;
    while (++position_ < seq)
      missing.push_back(position_);
  }
}

void GapReader::give_up(const pg::Snapshot& snapshot) {
  std::erase_if(gaps_, [&](const auto& gap) { return is_over(gap.second, snapshot); });
}

std::uint64_t GapReader::stamp(const pg::Snapshot& snapshot) {
  return next_xid_of(session_, snapshot);
}

bool GapReader::is_over(std::uint64_t stamp, const pg::Snapshot& snapshot) const {
  return snapshot.xmin >= stamp;
}

std::uint64_t GapsUntilXminMoves::stamp(const pg::Snapshot& snapshot) {
  return snapshot.xmin;
}

bool GapsUntilXminMoves::is_over(std::uint64_t stamp, const pg::Snapshot& snapshot) const {
  return snapshot.xmin > stamp;
}

std::uint64_t GapsStampedByXmax::stamp(const pg::Snapshot& snapshot) {
  return snapshot.xmax;
}

}  // namespace postrider::testing
