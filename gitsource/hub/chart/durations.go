package chart

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"text/template"
	"time"
)

// durations are Helm's functions about durations.
var durations = template.FuncMap{
	"mustToDuration":       duration,
	"durationSeconds":      in(time.Second),
	"durationMilliseconds": func(v any) int64 { return orZero(v).Milliseconds() },
	"durationMicroseconds": func(v any) int64 { return orZero(v).Microseconds() },
	"durationNanoseconds":  func(v any) int64 { return orZero(v).Nanoseconds() },
	"durationMinutes":      in(time.Minute),
	"durationHours":        in(time.Hour),
	"durationDays":         in(24 * time.Hour),
	"durationWeeks":        in(7 * 24 * time.Hour),
	"durationRoundTo":      func(v, to any) time.Duration { return orZero(v).Round(orZero(to)) },
	"durationTruncateTo":   func(v, to any) time.Duration { return orZero(v).Truncate(orZero(to)) },
}

func in(unit time.Duration) func(any) float64 {
	return func(v any) float64 { return float64(orZero(v)) / float64(unit) }
}

func orZero(v any) time.Duration {
	d, err := duration(v)
	if err != nil {
		return 0
	}
	return d
}

// duration reads a duration such as 1h2m3s, or a number of seconds.
func duration(v any) (time.Duration, error) {
	switch v := v.(type) {
	case nil:
		return 0, errors.New("invalid duration")
	case time.Duration:
		return v, nil
	case string:
		text := strings.TrimSpace(v)
		if d, err := time.ParseDuration(text); err == nil {
			return d, nil
		}
		seconds, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, errors.New("not a duration")
		}
		return ofSeconds(seconds)
	}
	switch r := reflect.ValueOf(v); {
	case r.CanInt():
		return ofSeconds(float64(r.Int()))
	case r.CanUint():
		return ofSeconds(float64(r.Uint()))
	case r.CanFloat():
		return ofSeconds(r.Float())
	}
	return 0, fmt.Errorf("unsupported duration type %T", v)
}

func ofSeconds(seconds float64) (time.Duration, error) {
	d := seconds * float64(time.Second)
	if math.IsNaN(d) || d > math.MaxInt64 || d < math.MinInt64 {
		return 0, errors.New("the duration is too long")
	}
	return time.Duration(d), nil
}
