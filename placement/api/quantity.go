package api

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// longestQuantity is the maximum length in bytes of a quantity, and longestExponent that of its exponent
// with its sign: no quantity that a cluster can store needs more.
const (
	longestQuantity = 64
	longestExponent = 4
)

// ParseQuantity is resource.ParseQuantity for text from anywhere. That computes for hours for a few bytes
// such as 1e2147483647, and for very many digits.
func ParseQuantity(text string) (resource.Quantity, error) {
	if i := strings.IndexAny(text, "eE"); len(text) > longestQuantity || i >= 0 && len(text)-i-1 > longestExponent {
		return resource.Quantity{}, errors.New("the number is too long or its exponent too large")
	}
	return resource.ParseQuantity(text)
}
