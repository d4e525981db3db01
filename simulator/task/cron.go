package task

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Schedule is a cron expression with five fields: minute, hour, day of the month, month, day of the week. Its
// grammar and its description in words are those of the real CLI 2.1.329.
type Schedule struct {
	expr   string
	fields [5]uint64 // bit n: the value n is set
}

const (
	cronMinute = iota
	cronHour
	cronDay
	cronMonth
	cronWeekday
)

// ParseCron parses an expression of five fields. Each field is a list of "*", values, ranges, and steps such as "*/5"
// or "0-30/10". It returns false if the expression is invalid.
func ParseCron(expr string) (Schedule, bool) {
	words := strings.Fields(expr)
	c := Schedule{expr: expr}
	if len(words) != len(c.fields) {
		return Schedule{}, false
	}
	for i, r := range [5][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}} { // 7 is also Sunday
		for part := range strings.SplitSeq(words[i], ",") {
			bits, ok := parseCronPart(part, r[0], r[1])
			if !ok {
				return Schedule{}, false
			}
			c.fields[i] |= bits
		}
	}
	const sunday, alsoSunday = 1 << 0, 1 << 7
	if c.fields[cronWeekday]&alsoSunday != 0 {
		c.fields[cronWeekday] = c.fields[cronWeekday]&^alsoSunday | sunday
	}
	return c, true
}

// parseCronPart returns the values of one part of a list as a bit set.
func parseCronPart(part string, low, high int) (uint64, bool) {
	span, steps, stepped := strings.Cut(part, "/")
	step := 1
	if stepped {
		var ok bool
		if step, ok = parseCronNumber(steps); !ok || step == 0 {
			return 0, false
		}
	}
	from, to := low, high
	if span != "*" {
		first, last, ranged := strings.Cut(span, "-")
		if stepped && !ranged {
			return 0, false
		}
		if !ranged {
			last = first
		}
		var ok1, ok2 bool
		from, ok1 = parseCronNumber(first)
		to, ok2 = parseCronNumber(last)
		if !ok1 || !ok2 || from < low || to > high || from > to {
			return 0, false
		}
	}
	var bits uint64
	for v := from; v <= to; v += step {
		bits |= 1 << v
	}
	return bits, true
}

func parseCronNumber(s string) (int, bool) {
	if s == "" || len(s) > 4 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// NextWithinYear returns the first time after t that matches the schedule; false means none within a year.
func (c Schedule) NextWithinYear(t time.Time) (time.Time, bool) {
	end := t.AddDate(1, 0, 1)
	t = time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute()+1, 0, 0, t.Location())
	for t.Before(end) {
		switch {
		case !c.fieldAllows(cronMonth, int(t.Month())) || !c.matchesDay(t):
			t = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, t.Location())
		case !c.fieldAllows(cronHour, t.Hour()):
			t = t.Add(time.Hour - time.Duration(t.Minute())*time.Minute)
		case !c.fieldAllows(cronMinute, t.Minute()):
			t = t.Add(time.Minute)
		default:
			return t, true
		}
	}
	return time.Time{}, false
}

func (c Schedule) fieldAllows(field, value int) bool { return c.fields[field]>>value&1 == 1 }

// matchesDay reports whether the day of t matches. If day of month and day of week are limited, one match is enough.
func (c Schedule) matchesDay(t time.Time) bool {
	const everyDay, everyWeekday = 1<<32 - 2, 1<<7 - 1
	day, weekday := c.fieldAllows(cronDay, t.Day()), c.fieldAllows(cronWeekday, int(t.Weekday()))
	if c.fields[cronDay] != everyDay && c.fields[cronWeekday] != everyWeekday {
		return day || weekday
	}
	return day && weekday
}

// Expression returns the schedule as written.
func (c Schedule) Expression() string { return c.expr }

// String describes a common schedule in words. For other schedules, it returns the expression.
func (c Schedule) String() string {
	words := strings.Fields(c.expr)
	if len(words) != len(c.fields) {
		return c.expr
	}
	minute, hour, weekday := words[cronMinute], words[cronHour], words[cronWeekday]
	if words[cronDay] != "*" || words[cronMonth] != "*" {
		return c.expr
	}
	m, fixed := parseCronNumber(minute)
	switch h, daily := parseCronNumber(hour); {
	case hour == "*" && weekday == "*" && minute == "*":
		return "Every minute"
	case hour == "*" && weekday == "*" && !fixed:
		if n, ok := stepOfField(minute); ok {
			return everyText(n, "minute")
		}
	case hour == "*" && weekday == "*":
		return "Every hour" + atMinuteTextUnlessZero(m)
	case fixed && !daily && weekday == "*":
		if n, ok := stepOfField(hour); ok {
			return everyText(n, "hour") + atMinuteTextUnlessZero(m)
		}
	case fixed && daily:
		if days := weekdayText(weekday); days != "" {
			return days + " at " + time.Date(0, 1, 1, h, m, 0, 0, time.UTC).Format("3:04 PM")
		}
	}
	return c.expr
}

func stepOfField(field string) (int, bool) {
	step, ok := strings.CutPrefix(field, "*/")
	if !ok {
		return 0, false
	}
	return parseCronNumber(step)
}

func everyText(n int, unit string) string {
	if n == 1 {
		return "Every " + unit
	}
	return fmt.Sprintf("Every %d %ss", n, unit)
}

func atMinuteTextUnlessZero(minute int) string {
	if minute == 0 {
		return ""
	}
	return fmt.Sprintf(" at :%02d", minute)
}

func weekdayText(weekday string) string {
	switch {
	case weekday == "*":
		return "Every day"
	case weekday == "1-5":
		return "Weekdays"
	case len(weekday) == 1 && weekday >= "0" && weekday <= "7":
		return "Every " + time.Weekday((weekday[0]-'0')%7).String()
	}
	return ""
}
