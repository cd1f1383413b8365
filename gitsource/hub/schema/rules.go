package schema

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/variable"
)

// A rule warns of values of a built-in type that every API server refuses.
type rule func(c *comparison, value map[string]any, p *document.FieldPath)

// rules are the rules by Go type, wherever in an object a value of the type is.
var rules = map[reflect.Type]rule{}

// of adds a rule for values of type T. Values that cannot be decoded are reported elsewhere.
func of[T any](check func(c *comparison, value *T, p *document.FieldPath)) {
	rules[reflect.TypeFor[T]()] = func(c *comparison, value map[string]any, p *document.FieldPath) {
		typed := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(value, typed); err == nil {
			check(c, typed, p)
		}
	}
}

func init() {
	rules[reflect.TypeFor[metav1.ObjectMeta]()] = checkMetadata
	of(checkLabelSelector)
}

// checkMetadata checks the labels, annotations and finalizers of an object or a template.
func checkMetadata(c *comparison, metadata map[string]any, p *document.FieldPath) {
	c.labels(metadata["labels"], p.Child("labels"))
	annotations, _ := metadata["annotations"].(map[string]any)
	size := 0
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		c.invalid(p.Child("annotations", key), "key of an annotation", key, validation.IsQualifiedName(strings.ToLower(key)))
		value, _ := annotations[key].(string)
		size += len(key) + len(value)
	}
	if size > apivalidation.TotalAnnotationSizeLimitB {
		c.report(p.Child("annotations"), fmt.Sprintf("are larger than %d KiB together", apivalidation.TotalAnnotationSizeLimitB>>10))
	}
	finalizers, _ := metadata["finalizers"].([]any)
	for i, f := range finalizers {
		if name, isText := f.(string); isText {
			c.invalid(p.Child("finalizers").At(i), "finalizer", name, validation.IsQualifiedName(name))
		}
	}
}

// labels checks the keys and values of labels, or of a selector of labels.
func (c *comparison) labels(value any, p *document.FieldPath) {
	labels, _ := value.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		c.invalid(p.Child(key), "key of a label", key, validation.IsQualifiedName(key))
		if value, isText := labels[key].(string); isText {
			c.invalid(p.Child(key), "value of a label", value, validation.IsValidLabelValue(value))
		}
	}
}

func checkLabelSelector(c *comparison, s *metav1.LabelSelector, p *document.FieldPath) {
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		at := p.Child("matchLabels", key)
		c.invalid(at, "key of a label", key, validation.IsQualifiedName(key))
		c.invalid(at, "value of a label", s.MatchLabels[key], validation.IsValidLabelValue(s.MatchLabels[key]))
	}
	for i, e := range s.MatchExpressions {
		at := p.Child("matchExpressions").At(i)
		c.invalid(at.Child("key"), "key of a label", e.Key, validation.IsQualifiedName(e.Key))
		for j, value := range e.Values {
			c.invalid(at.Child("values").At(j), "value of a label", value, validation.IsValidLabelValue(value))
		}
		listed := e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn
		switch {
		case listed && len(e.Values) == 0:
			c.report(at.Child("values"), fmt.Sprintf("required with the operator %s, and missing; add values", e.Operator))
		case !listed && len(e.Values) > 0:
			c.report(at.Child("values"), fmt.Sprintf("not allowed with the operator %s; remove them", e.Operator))
		}
	}
}

// missing reports that a required field is missing, unless it is misspelt.
func (c *comparison) missing(p *document.FieldPath, advice string) {
	if !c.r.IsMuted(p.String()) {
		c.report(p, "required, and missing; "+advice)
	}
}

// require reports that a field is missing if its value is the zero value.
func require[T comparable](c *comparison, value T, p *document.FieldPath) {
	var zero T
	if value == zero {
		c.missing(p, "add it")
	}
}

// between reports a number that is out of its range.
func between[T ~int32 | ~int64 | ~int](c *comparison, value, low, high T, p *document.FieldPath) {
	if value < low || value > high {
		c.report(p, fmt.Sprintf("must be between %d and %d, not %d", low, high, value))
	}
}

// notNegative reports a negative number; a nil one is not set.
func notNegative[T ~int32 | ~int64](c *comparison, value *T, p *document.FieldPath) {
	if value != nil && *value < 0 {
		c.report(p, fmt.Sprintf("must not be negative, but is %d", *value))
	}
}

// checkShare reports a text in place of a number or a percentage, and a negative number.
func checkShare(c *comparison, value *intstr.IntOrString, p *document.FieldPath) {
	switch {
	case value == nil:
	case value.Type == intstr.Int:
		notNegative(c, &value.IntVal, p)
	case !variable.In(value.StrVal) && len(validation.IsValidPercent(value.StrVal)) > 0:
		c.report(p, fmt.Sprintf("%q is neither a whole number nor a percentage; write the number without quotes, or a percentage such as 25%%", value.StrVal))
	}
}

// exactlyOne reports a struct of which not exactly one field is set. allowNone allows that none
// is.
func exactlyOne(c *comparison, value any, allowNone bool, p *document.FieldPath, what string) {
	var set []string
	v := reflect.ValueOf(value)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if f := v.Field(i); f.Kind() == reflect.Pointer && !f.IsNil() {
			set = append(set, name)
		}
	}
	switch {
	case len(set) > 1:
		c.report(p, "has "+strings.Join(set, " and ")+", but only one "+what+" is allowed; keep one")
	case len(set) == 0 && !allowNone:
		c.report(p, "has no "+what+"; add one")
	}
}
