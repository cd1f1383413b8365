package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

var capacityTypes = []string{"allocatable", "available", "total"}

// propertyNameFault returns why the name of a cluster property is invalid; empty if it is
// valid.
func propertyNameFault(name string) string {
	if rest, ok := strings.CutPrefix(name, api.ResourcePropertyPrefix); ok {
		return resourceNameFault(name, rest)
	}
	segments := strings.Split(name, "/")
	if len(segments) == 1 {
		if msgs := validation.IsQualifiedName(name); len(msgs) > 0 {
			return fmt.Sprintf("property name %s is not valid: %s", name, strings.Join(msgs, "; "))
		}
		return ""
	}
	domain, word := validation.IsDNS1123Subdomain(segments[0]), validation.IsQualifiedName(segments[0])
	if len(domain) > 0 && len(word) > 0 {
		return fmt.Sprintf("property name first segment %s is not valid: it is neither a valid DNS subdomain (%s) nor a valid qualified name (%s)",
			segments[0], strings.Join(domain, "; "), strings.Join(word, "; "))
	}
	for _, segment := range segments[1:] {
		if msgs := validation.IsQualifiedName(segment); len(msgs) > 0 {
			return fmt.Sprintf("property name segment %s is not valid: %s", segment, strings.Join(msgs, "; "))
		}
	}
	return ""
}

func resourceNameFault(name, rest string) string {
	capacity, kind, found := strings.Cut(rest, "-")
	switch {
	case !found || kind == "":
		return fmt.Sprintf("invalid resource property name %s, expected format is [PREFIX]/[CAPACITY_TYPE]-[RESOURCE_NAME]", name)
	case !slices.Contains(capacityTypes, capacity):
		return fmt.Sprintf("invalid capacity type in resource property name %s, supported values are %v", name, capacityTypes)
	}
	if msgs := validation.IsQualifiedName(name); len(msgs) > 0 {
		return fmt.Sprintf("property name %s is not valid: %s", name, strings.Join(msgs, "; "))
	}
	return ""
}

func checkProperties(r *document.Report, p *document.FieldPath, requirements []api.PropertySelectorRequirement) {
	byName := map[string][]bound{}
	var names []string // in order
	for i, q := range requirements {
		if msg := propertyNameFault(q.Name); msg != "" {
			r.Rulef(p.At(i).Child("name"), "invalid property name %s: %s", q.Name, msg)
		}
		value, ok := checkRequirement(r, p.At(i), q)
		if !ok {
			continue
		}
		if byName[q.Name] == nil {
			names = append(names, q.Name)
		}
		byName[q.Name] = append(byName[q.Name], bound{q.Operator, value, q.Values[0]})
	}
	for _, name := range names {
		if msg := contradiction(byName[name]); msg != "" {
			r.Rulef(p, "inconsistent requirements on property %s: %s", name, msg)
		}
	}
}

func checkRequirement(r *document.Report, p *document.FieldPath, q api.PropertySelectorRequirement) (resource.Quantity, bool) {
	if len(q.Values) != 1 {
		r.Rulef(p.Child("values"), "invalid requirement on property %s: operator %s requires exactly one value, got %d", q.Name, q.Operator, len(q.Values))
		return resource.Quantity{}, false
	}
	value, err := api.ParseQuantity(q.Values[0])
	if err != nil {
		r.Rulef(p.Child("values").At(0), "invalid requirement on property %s: value %q is not a valid resource.Quantity: %v", q.Name, q.Values[0], err)
		return resource.Quantity{}, false
	}
	return value, true
}

// A bound is one requirement on a property.
type bound struct {
	operator api.PropertySelectorOperator
	value    resource.Quantity
	text     string
}

func (b bound) strict() bool {
	return b.operator == api.PropertyGreaterThan || b.operator == api.PropertyLessThan
}

// allows reports whether the bound allows a value at a distance of this sign on its inner side.
func (b bound) allows(sign int) bool { return sign > 0 || sign == 0 && !b.strict() }

// contradiction returns why no cluster can meet all requirements on one property; empty if a
// cluster can.
func contradiction(bounds []bound) string {
	var low, high, equal *bound
	for i := range bounds {
		b := &bounds[i]
		switch b.operator {
		case api.PropertyEqualTo:
			if equal != nil && equal.value.Cmp(b.value) != 0 {
				return fmt.Sprintf("conflicting Eq values %s and %s", equal.text, b.text)
			}
			equal = b
		case api.PropertyGreaterThan, api.PropertyGreaterThanOrEqualTo:
			low = tighter(low, b, 1)
		case api.PropertyLessThan, api.PropertyLessThanOrEqualTo:
			high = tighter(high, b, -1)
		}
	}
	for _, b := range bounds {
		if equal != nil && b.operator == api.PropertyNotEqualTo && b.value.Cmp(equal.value) == 0 {
			return fmt.Sprintf("conflicting Eq and Ne on same value %s", equal.text)
		}
	}
	switch {
	case low != nil && high != nil && !(low.allows(high.value.Cmp(low.value)) && high.allows(high.value.Cmp(low.value))):
		return fmt.Sprintf("lower bound (%s) and upper bound (%s) exclude all values", low.text, high.text)
	case equal != nil && low != nil && !low.allows(equal.value.Cmp(low.value)):
		return fmt.Sprintf("eq value %s violates lower bound %s", equal.text, low.text)
	case equal != nil && high != nil && !high.allows(high.value.Cmp(equal.value)):
		return fmt.Sprintf("eq value %s violates upper bound %s", equal.text, high.text)
	}
	return ""
}

// tighter returns the larger of two bounds, or with sign -1 the smaller one; of equal bounds
// the strict one.
func tighter(a, b *bound, sign int) *bound {
	if a == nil {
		return b
	}
	if c := sign * b.value.Cmp(a.value); c > 0 || c == 0 && b.strict() {
		return b
	}
	return a
}
