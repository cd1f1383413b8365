package settings

import (
	"fmt"
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
