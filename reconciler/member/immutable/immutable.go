// Package immutable recognises refusals of an API server because something cannot be changed once an
// object exists.
//
// Many messages say so. A rule of a CustomResourceDefinition or of a ValidatingAdmissionPolicy may have
// any message; that it compares the object with the one before is in its expression. Nothing here
// proves that a new object would be accepted.
package immutable

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Says reports whether the message of a refusal says that it has no other reason than that something
// is immutable.
func Says(err error) bool { return caused(err, func(metav1.StatusCause) bool { return false }) }

// Broken reports whether a refusal has no other reason than that something is immutable, some of it
// by the rules.
func Broken(err error, rules []Rule) bool {
	has := func(text string, by func(Rule) bool) bool {
		return slices.ContainsFunc(rules, func(r Rule) bool { return by(r) && strings.HasSuffix(text, r.Message) })
	}
	return caused(err, func(c metav1.StatusCause) bool {
		return has(c.Message, func(r Rule) bool { return r.Old && r.Message != "" }) ||
			has(c.Message, func(r Rule) bool { return r.Old && r.Message == "" }) && !has(c.Message, func(r Rule) bool { return !r.Old && r.Message != "" })
	})
}

// caused reports whether each cause of a refusal is that something is immutable: it says so, or it is
// the message of a rule.
func caused(err error, ruled func(metav1.StatusCause) bool) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	status := answer.Status()
	if text, admitted := admission(status.Message); admitted {
		return contains(text, admissionPhrases) || ruled(metav1.StatusCause{Message: text})
	}
	return apierrors.IsInvalid(err) && status.Details != nil && len(status.Details.Causes) > 0 &&
		!slices.ContainsFunc(status.Details.Causes, func(c metav1.StatusCause) bool { return !says(c) && !ruled(c) })
}

// ByAdmission reports whether an admission webhook or policy has refused an object.
func ByAdmission(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	_, admitted := admission(answer.Status().Message)
	return admitted
}

// admissions match the beginning of the message of a refusal by an admission webhook or policy. What
// follows is what its author wrote. Such a refusal may list the same causes as an API server.
var admissions = []*regexp.Regexp{
	regexp.MustCompile(`admission webhook "[^"]*" denied the request(?:: | without explanation)`),
	regexp.MustCompile(`ValidatingAdmissionPolicy '([^']*)' (?:with binding '[^']*' )?denied request: `),
}

func admission(message string) (text string, admitted bool) {
	for _, begin := range admissions {
		if at := begin.FindStringIndex(message); at != nil {
			return message[at[1]:], true
		}
	}
	return "", false
}

// Policy returns the name of the ValidatingAdmissionPolicy that has refused an object; empty if it was
// none.
func Policy(err error) string {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return ""
	}
	if found := admissions[1].FindStringSubmatch(answer.Status().Message); found != nil {
		return found[1]
	}
	return ""
}

var (
	// phrases occur in the messages of API servers about a field that cannot be changed. The last is
	// how a rule without a message compares with the value before.
	phrases = []string{"immutable", "may not change", "may not be changed", "cannot change", "can not be unset", "updates to ", "oldSelf"}
	// admissionPhrases occur in those of admission webhooks and policies.
	admissionPhrases = []string{
		"immutable", "oldObject", "may not change", "may not be change", "may not be modified", "must not change", "must not be change", "must not be modified",
		"cannot change", "cannot be change", "cannot be modified", "can't be change", "can't be modified", "can not be change", "can not be modified",
	}
)

func contains(text string, phrases []string) bool {
	return slices.ContainsFunc(phrases, func(phrase string) bool { return strings.Contains(text, phrase) })
}

// says reports whether a cause of a refusal is that a field is immutable.
func says(c metav1.StatusCause) bool {
	detail, found := strings.CutPrefix(c.Message, "Forbidden: ")
	if !found { // the message quotes the value, which may be any text, before it says what is wrong
		detail = c.Message[strings.LastIndex(c.Message, ": ")+1:]
	}
	return contains(detail, phrases) || strings.Contains(c.Message, "failed rule: ") && strings.Contains(c.Message, "oldSelf")
}

// A Rule is a condition for objects.
type Rule struct {
	// Message is what a refusal by the rule says, or ends with; empty if that depends on the object.
	Message string
	// Old says that the rule refers to the object before, so that it may make something immutable.
	Old bool
}

// RulesOf returns the rules of one version of a CustomResourceDefinition.
func RulesOf(definition *unstructured.Unstructured, version string) []Rule {
	field, _, _ := unstructured.NestedFieldNoCopy(definition.Object, "spec", "versions")
	versions, _ := field.([]any)
	var rules []Rule
	for _, v := range versions {
		if v, _ := v.(map[string]any); v["name"] == version {
			field, _, _ := unstructured.NestedFieldNoCopy(v, "schema", "openAPIV3Schema")
			schema, _ := field.(map[string]any)
			rules = appendRules(rules, schema)
		}
	}
	return rules
}

// appendRules appends the rules of a schema and of those in it.
func appendRules(rules []Rule, schema map[string]any) []Rule {
	validations, _ := schema["x-kubernetes-validations"].([]any)
	for _, v := range validations {
		v, _ := v.(map[string]any)
		rule, _ := v["rule"].(string)
		rules = append(rules, ruleOf(v, oldSelf.MatchString(rule), "failed rule: "+rule))
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if below, ok := schema[name].(map[string]any); ok {
			rules = appendRules(rules, below)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, below := range properties {
		if below, ok := below.(map[string]any); ok {
			rules = appendRules(rules, below)
		}
	}
	return rules
}

// ruleOf returns a rule with its message, or the one that a server makes of it.
func ruleOf(written map[string]any, old bool, without string) Rule {
	message, _ := written["message"].(string)
	computed, _ := written["messageExpression"].(string)
	switch {
	case computed != "":
		return Rule{Old: old}
	case message != "":
		return Rule{strings.TrimSpace(message), old}
	}
	return Rule{strings.TrimSpace(without), old}
}

var (
	oldSelf   = regexp.MustCompile(`\boldSelf\b`)
	oldObject = regexp.MustCompile(`\boldObject\b`)
	variable  = regexp.MustCompile(`\bvariables\.(\w+)`)
)

// RulesOfPolicy returns the rules of a ValidatingAdmissionPolicy, which may refer to the object before
// through variables, too.
func RulesOfPolicy(policy *unstructured.Unstructured) []Rule {
	field, _, _ := unstructured.NestedFieldNoCopy(policy.Object, "spec", "variables")
	variables, _ := field.([]any)
	old := map[string]bool{}
	refers := func(expression string) bool {
		return oldObject.MatchString(expression) ||
			slices.ContainsFunc(variable.FindAllStringSubmatch(expression, -1), func(found []string) bool { return old[found[1]] })
	}
	for _, v := range variables { // each may refer to those before it
		v, _ := v.(map[string]any)
		name, _ := v["name"].(string)
		expression, _ := v["expression"].(string)
		old[name] = refers(expression)
	}
	field, _, _ = unstructured.NestedFieldNoCopy(policy.Object, "spec", "validations")
	validations, _ := field.([]any)
	var rules []Rule
	for _, v := range validations {
		v, _ := v.(map[string]any)
		expression, _ := v["expression"].(string)
		rules = append(rules, ruleOf(v, refers(expression), "failed expression: "+expression))
	}
	return rules
}
