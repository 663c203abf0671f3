#include "chat/template/clock.h"

#include <array>
#include <ctime>

#include "base/fail.h"

namespace hearth::chat {
namespace {

std::tm broken_down(std::chrono::local_seconds time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  const auto january_first =
      std::chrono::local_days(date.year() / std::chrono::January / std::chrono::day(1));
  std::tm tm{};
  tm.tm_year = static_cast<int>(date.year()) - 1900;
  tm.tm_mon = static_cast<int>(static_cast<unsigned>(date.month())) - 1;
  tm.tm_mday = static_cast<int>(static_cast<unsigned>(date.day()));
  tm.tm_hour = static_cast<int>(clock.hours().count());
  tm.tm_min = static_cast<int>(clock.minutes().count());
  tm.tm_sec = static_cast<int>(clock.seconds().count());
  tm.tm_wday = static_cast<int>(std::chrono::weekday(day).c_encoding());
  tm.tm_yday = static_cast<int>((day - january_first).count());
  return tm;
}

}  // namespace

Result<std::string> spell_time(std::string_view format, std::chrono::local_seconds time) {
  // A marker at the end tells an empty result from one that did not fit.
  std::string marked;
  for (std::size_t i = 0; i < format.size(); ++i) {
    const bool is_zone =
        format[i] == '%' && i + 1 < format.size() && (format[i + 1] == 'Z' || format[i + 1] == 'z');
    if (is_zone) {
      ++i;
      continue;
    }
    marked += format[i];
    if (format[i] == '%' && i + 1 < format.size()) {
      marked += format[++i];
    }
  }
  marked += '.';
  const std::tm tm = broken_down(time);
  std::array<char, 512> buffer{};
  const std::size_t n = std::strftime(buffer.data(), buffer.size(), marked.c_str(), &tm);
  if (n == 0) {
    return fail(ErrorCode::invalid_file, "strftime_now: the text for '{}' is too long", format);
  }
  return std::string(buffer.data(), n - 1);
}

}  // namespace hearth::chat
