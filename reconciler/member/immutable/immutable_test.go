package immutable

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

var disks = schema.GroupResource{Group: "example.com", Resource: "disks"}

func invalid(causes ...*field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Disk"}, "one", causes)
}

// denied is a refusal in the words of an API server about an admission webhook or policy.
func denied(code int32, reason metav1.StatusReason, text string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: code, Reason: reason, Message: text, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: text}}},
	}}
}

func webhook(text string) error {
	return denied(403, metav1.StatusReasonForbidden, `admission webhook "fixed.example.com" denied the request: `+text)
}

func policy(text string) error {
	return denied(422, metav1.StatusReasonInvalid, `disks.example.com "one" is forbidden: ValidatingAdmissionPolicy 'fixed' with binding 'all' denied request: `+text)
}

// An object is recreated only if everything that is wrong is that something is immutable.
func TestSays(t *testing.T) {
	spec := field.NewPath("spec")
	fixed := field.Invalid(spec.Child("template"), map[string]any{"image": "a: b"}, "field is immutable")
	tests := map[string]struct {
		err  error
		want bool
	}{
		"an immutable field":            {invalid(fixed), true},
		"in another error":              {fmt.Errorf("apply: %w", invalid(fixed)), true},
		"the selector of a Deployment":  {invalid(field.Invalid(spec.Child("selector"), nil, "field is immutable")), true},
		"an immutable ConfigMap":        {invalid(field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set")), true},
		"a StatefulSet":                 {invalid(field.Forbidden(spec, "updates to statefulset spec for fields other than 'replicas', 'template' are forbidden")), true},
		"the address of a Service":      {invalid(field.Invalid(spec.Child("clusterIPs").Index(0), []string{"10.0.0.2"}, "may not change once set")), true},
		"the role of a RoleBinding":     {invalid(field.Invalid(field.NewPath("roleRef"), "view", "cannot change roleRef")), true},
		"a rule of a custom resource":   {invalid(field.Invalid(spec.Child("size"), "large", "Value is immutable")), true},
		"a rule without a message":      {invalid(field.Invalid(spec.Child("size"), "string", "failed rule: self == oldSelf")), true},
		"a rule with a colon":           {invalid(field.Invalid(spec.Child("size"), "string", "failed rule: has(self.x) ? self.x == oldSelf.x : true")), true},
		"a rule about the value itself": {invalid(field.Invalid(spec.Child("size"), "string", "failed rule: self.size() < 4")), false},
		"another message of a rule":     {invalid(field.Invalid(spec.Child("zone"), "string", "a disk cannot be moved")), false},
		"another field is wrong":        {invalid(fixed, field.Invalid(spec.Child("replicas"), -1, "must be greater than or equal to 0")), false},
		"a value that mentions it":      {invalid(field.Invalid(spec.Child("name"), "immutable", "must be lower case")), false},
		"a value that quotes a verdict": {invalid(field.Invalid(spec.Child("name"), "x: field is immutable", "must be lower case")), false},
		"an invalid value":              {invalid(field.Required(spec.Child("name"), "")), false},
		"a conflict":                    {apierrors.NewConflict(disks, "one", errors.New("the object is immutable")), false},
		"a missing permission":          {apierrors.NewForbidden(disks, "one", errors.New("the object is immutable")), false},
		"a webhook":                     {webhook("spec.size: Forbidden: field is immutable"), true},
		"a webhook, otherwise":          {webhook("the size of a disk cannot be changed"), true},
		"a webhook about something":     {webhook("no changes before Monday"), false},
		"a webhook named so":            {denied(403, metav1.StatusReasonForbidden, `admission webhook "immutable.example.com" denied the request: no changes before Monday`), false},
		"a webhook without a reason":    {denied(403, metav1.StatusReasonForbidden, `admission webhook "fixed.example.com" denied the request without explanation`), false},
		"a policy":                      {policy("class is immutable"), true},
		"a policy without a message":    {policy("failed expression: object.spec.class == oldObject.spec.class"), true},
		"a policy about something":      {policy("every disk needs an owner"), false},
		"no causes":                     {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 422, Reason: metav1.StatusReasonInvalid, Message: "field is immutable"}}, false},
		"no answer":                     {errors.New("field is immutable"), false},
		"nothing":                       {nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Says(test.err); got != test.want {
				t.Errorf("Says(%v) = %t, want %t", test.err, got, test.want)
			}
		})
	}
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// The rules of a definition that refer to the value before are found wherever they are, in one
// version only; a refusal by them is recognised by their message, and by no other.
func TestRulesOfADefinition(t *testing.T) {
	definition := object(t, `
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        x-kubernetes-validations: [{rule: "self.spec == oldSelf.spec || self.spec.open", message: "the spec is closed"}]
        properties:
          spec:
            properties:
              zone: {x-kubernetes-validations: [{rule: "self == oldSelf", message: " a disk cannot be moved "}, {rule: "self != 'x'", message: "no such zone"}]}
              sizes: {items: {x-kubernetes-validations: [{rule: "self >= oldSelf"}]}}
              by: {additionalProperties: {x-kubernetes-validations: [{rule: "self != myoldSelfish", message: "not about it"}]}}
  - {name: v2, schema: {openAPIV3Schema: {x-kubernetes-validations: [{rule: "self == oldSelf", messageExpression: "'no ' + self.x"}, {rule: "self.y", message: "no y"}]}}}
`)
	var messages []string
	for _, r := range RulesOf(definition, "v1") {
		if r.Old {
			messages = append(messages, r.Message)
		}
	}
	slices.Sort(messages)
	if want := []string{"a disk cannot be moved", "failed rule: self >= oldSelf", "the spec is closed"}; !slices.Equal(messages, want) {
		t.Errorf("rules %q, want %q", messages, want)
	}
	zone := field.NewPath("spec", "zone")
	for name, test := range map[string]struct {
		version string
		err     error
		want    bool
	}{
		"its message":                {"v1", invalid(field.Invalid(zone, "string", "a disk cannot be moved")), true},
		"with a reason of its own":   {"v1", invalid(field.Forbidden(zone, "a disk cannot be moved")), true},
		"with another, and a phrase": {"v1", invalid(field.Forbidden(zone, "a disk cannot be moved"), field.Invalid(zone, "x", "field is immutable")), true},
		"a static rule":              {"v1", invalid(field.Invalid(zone, "string", "no such zone")), false},
		"with a static rule":         {"v1", invalid(field.Invalid(zone, "string", "a disk cannot be moved"), field.Invalid(zone, "string", "no such zone")), false},
		"a computed message":         {"v2", invalid(field.Invalid(zone, "string", "no b")), true},
		"a static rule beside one":   {"v2", invalid(field.Invalid(zone, "string", "no y")), false},
		"a version without rules":    {"v3", invalid(field.Invalid(zone, "string", "a disk cannot be moved")), false},
		"a webhook":                  {"v1", webhook("no changes before Monday"), false},
	} {
		if got := Broken(test.err, RulesOf(definition, test.version)); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

// So are those of a policy.
func TestRulesOfAPolicy(t *testing.T) {
	rules := RulesOfPolicy(object(t, `
spec:
  variables:
  - {name: before, expression: "oldObject.spec"}
  - {name: class, expression: "variables.before.class"}
  - {name: owner, expression: "object.spec.owner"}
  validations:
  - {expression: "object.spec.zone == oldObject.spec.zone", message: "a disk cannot be moved"}
  - {expression: "variables.class == object.spec.class", message: "once a class, always a class"}
  - {expression: "variables.owner != ''", message: "every disk needs an owner"}
`))
	for text, want := range map[string]bool{"a disk cannot be moved": true, "once a class, always a class": true, "every disk needs an owner": false} {
		if err := policy(text); Broken(err, rules) != want || Policy(err) != "fixed" || !ByAdmission(err) {
			t.Errorf("%s: %t, by %q", text, !want, Policy(err))
		}
	}
	if err := webhook("x"); Policy(err) != "" || !ByAdmission(err) || ByAdmission(errors.New("x")) || Policy(nil) != "" {
		t.Error("a webhook is no policy")
	}
}
