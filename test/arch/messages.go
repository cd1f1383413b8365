package arch

import (
	"go/ast"
	"regexp"
	"slices"
)

// Reasons are values: what a message says is decided where it is made, and whoever needs to know that gets a field. The rule
// is about names, since strings have no types of their own: it knows the calls that look into a text, and the names that
// texts for people have.

// readers are the functions and methods that look into a text.
var readers = regexp.MustCompile(`^(Contains|ContainsAny|HasPrefix|HasSuffix|Cut|CutPrefix|CutSuffix|TrimPrefix|TrimSuffix|Index|LastIndex|Split|SplitN|EqualFold|Replace|MatchString|FindString\w*|ReplaceAllString\w*)$`)

// messageNames are the names of texts for people.
var messageNames = regexp.MustCompile(`(?i)^(message|msg|reason|why|cause|failure|waits|warning|explanation)s?$`)

// mayReadMessages are the packages and files that may look into messages, with the reason.
var mayReadMessages = map[string]string{
	"cmd/gitfleet/check/finding.go":          "it escapes messages for GitHub",
	"cmd/gitfleet/check/inspect.go":          "warnings name overrides in their texts only, and decisions their objection",
	"cmd/gitfleet/view/proposals.go":         "what the text of a change begins with is the same for all",
	"placement/api/names.go":                 "messages of commits have trailers",
	"reconciler/member/pods/reader.go":       "the reasons of events of the kubelet are words such as FailedMount",
	"reconciler/member/report.go":            "a number in a text of gitfleet is never masked",
	"reconciler/review/rollout.go":           "it takes the first line",
	"reconciler/status":                      "it makes the messages",
	"reconciler/status/conditions":           "it makes the messages",
	"reconciler/member/immutable":            "API servers say only in messages why they refuse an object",
	"reconciler/member/apply/compare.go":     "as above",
	"reconciler/member/connection/answer.go": "as above",
}

// messages reports where product code looks into a message.
func messages(t *tree, report report) {
	products := []string{"cmd", "placement", "reconciler"} // what is below gitsource reads the messages of servers and libraries
	for _, f := range t.files {
		if mayReadMessages[f.path] != "" || mayReadMessages[f.pkg] != "" || !f.product() || f.generated || !under(f.pkg, products...) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			fn, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !readers.MatchString(fn.Sel.Name) {
				return true
			}
			if x, ok := fn.X.(*ast.Ident); ok && slices.ContainsFunc(f.imports, func(i imported) bool { return i.name == x.Name && i.path != "strings" }) {
				return true // such as a function of ours that shortens texts
			}
			if name := lastName(call.Args[0]); messageNames.MatchString(name) {
				report(f.path, t.line(call), "%s looks into %s, a text for people: let the value carry what has to be known as a field", fn.Sel.Name, name)
			}
			return true
		})
	}
}

// lastName is the name of a variable, a field or a called method; empty for other expressions.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		return lastName(e.Fun)
	}
	return ""
}
