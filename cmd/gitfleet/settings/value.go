package settings

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A size is a number of bytes, written as 1048576, 1Mi or 1M, in a flag and in the file.
type size int64

// String returns the size with the largest binary unit that divides it.
func (s *size) String() string { return resource.NewQuantity(int64(*s), resource.BinarySI).String() }

// Type returns the type of the value for the help of a flag.
func (s *size) Type() string { return "size" }

// Set implements pflag.Value.
func (s *size) Set(text string) error {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return fmt.Errorf("%q is not a size such as 512Ki or 1Mi", text)
	}
	n, whole := q.AsInt64()
	if !whole {
		return fmt.Errorf("%q is not a whole number of bytes", text)
	}
	*s = size(n)
	return nil
}

// A portion is a number of clusters or a percentage of them: 3 or "20%".
type portion struct{ intstr.IntOrString }

// String implements pflag.Value.
func (s *portion) String() string { return s.IntOrString.String() }

// Type returns the type of the value for the help of a flag.
func (s *portion) Type() string { return "number or percentage" }

// Set implements pflag.Value.
func (s *portion) Set(text string) error {
	digits, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || percent && n > 100 {
		return fmt.Errorf("%q is neither a number such as 3 nor a percentage such as 20%%", text)
	}
	s.IntOrString = intstr.Parse(text)
	return nil
}

// parseFields sets the first field of a struct to the text before a semicolon, and others from NAME=VALUE after each semicolon.
func parseFields(text, first string, all any) bool {
	main, rest, _ := strings.Cut(text, ";")
	to, _ := fieldOf(reflect.ValueOf(all).Elem(), first)
	to.SetString(main)
	ok := main != ""
	for ok && rest != "" {
		var field string
		field, rest, _ = strings.Cut(rest, ";")
		name, value, _ := strings.Cut(field, "=")
		to, known := fieldOf(reflect.ValueOf(all).Elem(), name)
		switch {
		case !known || name == first || value == "":
			return false
		case to.Kind() == reflect.Bool:
			to.SetBool(value == "true")
			ok = value == "true" || value == "false"
		default:
			to.SetString(value)
		}
	}
	return ok
}

// fieldOf returns the field of a section with a name: a key, or the keys of nested sections and of
// a field, separated by dots.
func fieldOf(section reflect.Value, name string) (reflect.Value, bool) {
	for field, value := range section.Fields() {
		key, ok := field.Tag.Lookup("key")
		if !ok {
			continue
		}
		if key == name {
			return value, true
		}
		if rest, nested := strings.CutPrefix(name, key+"."); nested && value.Kind() == reflect.Struct {
			return fieldOf(value, rest)
		}
	}
	return reflect.Value{}, false
}

// forms describe the values of the types of pflag.
var forms = map[string]string{
	"bool": "true or false", "int": "a whole number", "int64": "a whole number", "duration": "a duration such as 30s, 10m or 1h",
}
