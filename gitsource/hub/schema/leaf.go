package schema

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

// specialTypes are types that decode themselves. The functions return what was expected if a
// value cannot be decoded, and an empty text if it can.
var specialTypes = map[reflect.Type]func(any) string{
	reflect.TypeFor[json.RawMessage](): func(any) string { return "" },
	reflect.TypeFor[metav1.Time](): func(v any) string {
		if s, ok := v.(string); ok {
			if data, err := json.Marshal(s); err == nil && new(metav1.Time).UnmarshalJSON(data) == nil {
				return ""
			}
		}
		return "a time such as 2026-01-31T12:00:00Z"
	},
	reflect.TypeFor[metav1.FieldsV1](): func(any) string { return "" },
	reflect.TypeFor[resource.Quantity](): func(v any) string {
		switch q := v.(type) {
		case string:
			if _, err := resource.ParseQuantity(strings.TrimSpace(q)); err == nil {
				return ""
			}
		case int64, float64:
			return ""
		}
		return "a quantity such as 4 or 16Gi"
	},
	reflect.TypeFor[intstr.IntOrString](): func(v any) string {
		switch i := v.(type) {
		case string:
			return ""
		case int64:
			if i >= math.MinInt32 && i <= math.MaxInt32 {
				return ""
			}
		}
		return "a whole number or a percentage such as 25%"
	},
}

func scalarFault(v any, kind reflect.Kind) string {
	switch kind {
	case reflect.String:
		if _, ok := v.(string); !ok {
			return "a string, not " + document.Describe(v) + quoteIt(v)
		}
	case reflect.Bool:
		if _, ok := v.(bool); !ok {
			return "true or false, not " + document.Describe(v)
		}
	case reflect.Int32:
		if i, ok := v.(int64); !ok || i < math.MinInt32 || i > math.MaxInt32 {
			return "a whole number of at most 2147483647" + unquoteIt(v)
		}
	case reflect.Int, reflect.Int64:
		if _, ok := v.(int64); !ok {
			return "a whole number" + unquoteIt(v)
		}
	}
	return ""
}

func quoteIt(v any) string {
	switch v.(type) {
	case bool, int64, float64:
		return "; put it in quotes"
	}
	return ""
}

func unquoteIt(v any) string {
	if _, text := v.(string); text {
		return ", without quotes"
	}
	return ""
}

// enum validates a value of an enumeration. It corrects the case of the first letter, which is
// wrong in some public samples.
func (s *shaper) enum(v any, allowed []string, p *document.FieldPath) (any, bool) {
	word, isString := v.(string)
	if isString {
		for _, a := range allowed {
			if word == a {
				return word, true
			}
			if upperFirst(word) == upperFirst(a) {
				s.r.Warnf(p, "%q is written %s", word, a)
				return a, true
			}
		}
		if word == "" {
			return s.result(v, p, "one of "+strings.Join(allowed, ", ")+", or left out")
		}
		text := "one of " + strings.Join(allowed, ", ") + ", not \"" + word + "\""
		if near := api.Closest(word, allowed); near != "" {
			text += "; did you mean " + near + "?"
		}
		return s.result(v, p, text)
	}
	return s.result(v, p, "one of "+strings.Join(allowed, ", "))
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
