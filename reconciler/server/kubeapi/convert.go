package kubeapi

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var errNoInfo = errors.New("the request was not understood")

// A convertor knows the field selectors of a kind. Objects already have the requested version.
type convertor struct{ kind *kind }

// Convert implements runtime.ObjectConvertor.
func (convertor) Convert(in, _, _ any) error { return fmt.Errorf("a %T is not converted", in) }

// ConvertToVersion implements runtime.ObjectConvertor.
func (convertor) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (c convertor) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	if label == "metadata.name" || label == "metadata.namespace" || slices.Contains(c.kind.fields, label) {
		return label, value, nil
	}
	known := append([]string{"metadata.name", "metadata.namespace"}, c.kind.fields...)
	return "", "", fmt.Errorf("%s is not a field that %s can be selected by; there are %s", label, c.kind.plural, strings.Join(known, ", "))
}
