package validation

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

const (
	eq = api.PropertyEqualTo
	ne = api.PropertyNotEqualTo
	gt = api.PropertyGreaterThan
	ge = api.PropertyGreaterThanOrEqualTo
	lt = api.PropertyLessThan
	le = api.PropertyLessThanOrEqualTo
)

func requirement(name string, operator api.PropertySelectorOperator, values ...string) api.PropertySelectorRequirement {
	return api.PropertySelectorRequirement{Name: name, Operator: operator, Values: values}
}

// The requirements on one property must leave a value that meets all of them.
func TestCheckProperties(t *testing.T) {
	const inconsistent = "p: inconsistent requirements on property p: "
	for name, test := range map[string]struct {
		all  []api.PropertySelectorRequirement
		want []string
	}{
		"a range of one value": {[]api.PropertySelectorRequirement{requirement("p", ge, "1"), requirement("p", le, "1")}, nil},
		"an empty range":       {[]api.PropertySelectorRequirement{requirement("p", ge, "1"), requirement("p", lt, "1")}, []string{inconsistent + "lower bound (1) and upper bound (1) exclude all values"}},
		"the tightest bounds": {
			[]api.PropertySelectorRequirement{requirement("p", gt, "1"), requirement("p", gt, "5"), requirement("p", lt, "9"), requirement("p", lt, "4")},
			[]string{inconsistent + "lower bound (5) and upper bound (4) exclude all values"},
		},
		"two values":                {[]api.PropertySelectorRequirement{requirement("p", eq, "1"), requirement("p", eq, "2")}, []string{inconsistent + "conflicting Eq values 1 and 2"}},
		"equal quantities":          {[]api.PropertySelectorRequirement{requirement("p", eq, "1"), requirement("p", eq, "1000m")}, nil},
		"a value and its exclusion": {[]api.PropertySelectorRequirement{requirement("p", eq, "1"), requirement("p", ne, "1000m")}, []string{inconsistent + "conflicting Eq and Ne on same value 1"}},
		"a value below the range":   {[]api.PropertySelectorRequirement{requirement("p", eq, "1"), requirement("p", gt, "1")}, []string{inconsistent + "eq value 1 violates lower bound 1"}},
		"a value above the range":   {[]api.PropertySelectorRequirement{requirement("p", eq, "3"), requirement("p", le, "2")}, []string{inconsistent + "eq value 3 violates upper bound 2"}},
		"two properties":            {[]api.PropertySelectorRequirement{requirement("p", eq, "1"), requirement("q", eq, "2")}, nil},
		"contradictions of both": {
			[]api.PropertySelectorRequirement{requirement("q", eq, "1"), requirement("p", eq, "1"), requirement("p", eq, "2"), requirement("q", eq, "2")},
			[]string{"p: inconsistent requirements on property q: ", inconsistent},
		},
		"no value":   {[]api.PropertySelectorRequirement{requirement("p", eq)}, []string{"p[0].values: invalid requirement on property p: operator Eq requires exactly one value, got 0"}},
		"two of one": {[]api.PropertySelectorRequirement{requirement("p", eq, "1", "2")}, []string{"p[0].values: invalid requirement on property p: operator Eq requires exactly one value, got 2"}},
		"no quantity": {[]api.PropertySelectorRequirement{requirement("p", eq, "1"), requirement("p", eq, "much")}, []string{
			`p[1].values[0]: invalid requirement on property p: value "much" is not a valid resource.Quantity`,
		}},
		"a malformed name": {[]api.PropertySelectorRequirement{requirement("-p", eq, "1")}, []string{"p[0].name: invalid property name -p: property name -p is not valid: " + notQualified}},
	} {
		t.Run(name, func(t *testing.T) {
			checkProblems(t, func(r *document.Report) { checkProperties(r, r.Field("p"), test.all) }, test.want)
		})
	}
}

// Apart from Ne, requirements contradict each other exactly if no quantity meets all of them,
// in any order.
func TestContradictionsAreExact(t *testing.T) {
	meets := map[api.PropertySelectorOperator]func(a, b int) bool{
		eq: func(a, b int) bool { return a == b }, ne: func(a, b int) bool { return a != b },
		gt: func(a, b int) bool { return a > b }, ge: func(a, b int) bool { return a >= b },
		lt: func(a, b int) bool { return a < b }, le: func(a, b int) bool { return a <= b },
	}
	rapid.Check(t, func(t *rapid.T) {
		var all []api.PropertySelectorRequirement
		var quantities []int
		hasEq := false
		for range rapid.IntRange(1, 5).Draw(t, "requirements") {
			operator := rapid.SampledFrom([]api.PropertySelectorOperator{eq, ne, gt, ge, lt, le}).Draw(t, "operator")
			n := rapid.IntRange(0, 4).Draw(t, "quantity")
			all, quantities = append(all, requirement("p", operator, strconv.Itoa(n))), append(quantities, n)
			hasEq = hasEq || operator == eq
		}
		// Halves stand for the quantities between and outside of the whole numbers.
		possible := false
		for half := -1; half <= 9; half++ {
			meetsAll := true
			for i, q := range all {
				if q.Operator != ne || hasEq {
					meetsAll = meetsAll && meets[q.Operator](half, 2*quantities[i])
				}
			}
			possible = possible || meetsAll
		}
		order := rapid.Permutation(all).Draw(t, "order")
		for _, requirements := range [][]api.PropertySelectorRequirement{all, order} {
			r := &document.Report{}
			checkProperties(r, nil, slices.Clone(requirements))
			if (len(r.Problems) == 0) != possible {
				t.Fatalf("%v: %v, and a quantity meets all: %t", requirements, r.Problems.Err(), possible)
			}
		}
	})
}

func TestPropertyNameFault(t *testing.T) {
	for name, want := range map[string]string{
		"kubernetes-fleet.io/node-count":  "",
		"region":                          "",
		"a_b/c":                           "",
		"example.com/a/b":                 "",
		strings.Repeat("a.", 40) + "io/b": "", // a DNS subdomain may be longer than a qualified name
		"resources.kubernetes-fleet.io/total-cpu":       "",
		"resources.kubernetes-fleet.io/available-cpu":   "",
		"resources.kubernetes-fleet.io/allocatable-cpu": "",
		"resources.kubernetes-fleet.io/cpu":             "invalid resource property name",
		"resources.kubernetes-fleet.io/total-":          "invalid resource property name",
		"resources.kubernetes-fleet.io/used-cpu":        "invalid capacity type",
		"resources.kubernetes-fleet.io/total-c/pu":      "property name resources.kubernetes-fleet.io/total-c/pu is not valid",
		"":                "property name  is not valid",
		"two words":       "property name two words is not valid",
		"-/a":             "property name first segment - is not valid",
		"example.com/a/-": "property name segment - is not valid",
		"example.com/":    "property name segment  is not valid",
	} {
		if got := propertyNameFault(name); len(got) < len(want) || got[:len(want)] != want || want == "" && got != "" {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
