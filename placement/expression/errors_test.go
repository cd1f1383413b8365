package expression

import (
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// Only the language itself and optional values are available, so that the result depends on
// nothing but the object. The error has the position and the name of what is missing.
func TestUnavailableFunctions(t *testing.T) {
	for text, want := range map[string]string{
		`now() > timestamp(object.a)`:          "line 1, column 4: undeclared reference to 'now'",
		`object.a.lowerAscii() == "a"`:         "line 1, column 20: undeclared reference to 'lowerAscii'",
		`object.a.split(",").size() > 1`:       "line 1, column 15: undeclared reference to 'split'",
		`math.greatest(object.a, 1) == 1`:      "line 1, column 1: undeclared reference to 'math'",
		`cel.bind(x, object.a, x == 1)`:        "line 1, column 1: undeclared reference to 'cel'",
		`quantity(object.a).isLessThan("1k")`:  "line 1, column 9: undeclared reference to 'quantity'",
		`self.a == 1`:                          "line 1, column 1: undeclared reference to 'self'",
		"object.a == 1 &&\n  oldObject.a == 1": "line 2, column 3: undeclared reference to 'oldObject'; did you mean object?",
		`matches()`:                            "line 1, column 8: found no matching overload for 'matches' applied to '()'",
		`object.a.matches(1)`:                  "line 1, column 17: found no matching overload for 'matches' applied to 'dyn.(int)'",
		`"a" == 1`:                             "line 1, column 5: found no matching overload for '_==_' applied to '(string, int)'",
	} {
		if _, err := Compile(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A result that can only be of another type than bool is refused at once, and one that turns
// out to be of another type is an error of the evaluation.
func TestResultMustBeABool(t *testing.T) {
	for text, want := range map[string]string{
		`"true"`: "a string", `1.5`: "a double", `2u`: "a uint", `null`: "a null_type", `b"a"`: "a bytes", `[true]`: "a list(bool)",
		`{"a": true}`: "a map(string, bool)", `object.?a`: "an optional_type(dyn)", `timestamp("2026-01-01T00:00:00Z")`: "a google.protobuf.Timestamp", `bool`: "a type(bool)",
	} {
		want = "it gives " + want + ", and must give a bool: true if the object is available"
		if _, err := Compile(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	object := map[string]any{"yes": true, "no": false, "text": "true", "number": int64(1), "ratio": 0.5, "none": nil, "list": []any{true}, "map": map[string]any{"a": true}}
	for field, want := range map[string]string{
		"yes": "", "no": "", "text": "a string", "number": "an int", "ratio": "a double", "none": "a null_type", "list": "a list", "map": "a map",
	} {
		e, err := Compile("object." + field)
		if err != nil {
			t.Fatal(err)
		}
		if want != "" {
			want = "it gives " + want + ", and must give a bool"
		}
		holds, err := e.Holds(object)
		if holds != (field == "yes") || (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %t, %v, want %q", field, holds, err, want)
		}
	}
}

// An evaluation that fails has no result, and its error says why, unless the rest of the
// expression decides.
func TestErrorsOfAnEvaluation(t *testing.T) {
	for text, want := range map[string]string{
		`object.missing`:                                  "no such key: missing",
		`object.number.field == 1`:                        "no such key: field",
		`object.list[3]`:                                  "index out of bounds: 3",
		`object.number / (object.number - 1) == 1`:        "division by zero",
		`object.text > object.number`:                     "no such overload",
		`object.text.contains(object.number)`:             "no such overload",
		`object.number.matches("1")`:                      "no such overload",
		`int(object.text) == 1`:                           "type conversion error from 'string' to 'int'",
		`timestamp(object.text) == timestamp(0)`:          `invalid RFC 3339 timestamp "text"`,
		`object.long.matches("(a{9}b{9}){20}")`:           "it costs more than 100000 to evaluate",
		`object.missing || object.number == 1`:            "",
		`!(object.missing && object.number == 2)`:         "",
		`object.list.exists(x, x.missing || x == "a")`:    "",
		`object.missing == 1 ? true : true`:               "no such key: missing",
		`object.long.matches("(a{9}b{9}){20}") || true`:   "it costs more than 100000 to evaluate",
		`object.?missing.orValue(object.text) == "text"`:  "",
		`object.list.exists_one(x, x == "a")`:             "",
		`object.?number.optMap(n, n + 1).orValue(0) == 2`: "",
	} {
		e, err := Compile(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		holds, err := e.Holds(map[string]any{"number": int64(1), "text": "text", "list": []any{"a"}, "long": strings.Repeat("ab", 20_000)})
		if holds != (want == "") || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %t, %v, want %q", text, holds, err, want)
		}
	}
}

// A warning says at which size of lists an expression becomes too expensive, and what to do.
func TestTextOfAWarning(t *testing.T) {
	const want = "it may cost more than 100000 to evaluate once lists have 50 elements, and the object is not available then; loop over fewer lists within each other, and compare fields instead of whole objects"
	for likely, want := range map[uint64]string{0: "", Costliest: "", Costliest + 1: want} {
		if got := (&Expression{likely: likely}).Warning(); got != want {
			t.Errorf("%d: %q, want %q", likely, got, want)
		}
	}
}

// A match that would take too long is refused before it runs, since its cost is counted
// afterwards.
func TestLongMatchIsRefusedBeforeItRuns(t *testing.T) {
	const pattern = "(a|b)*c"
	longest := strings.Repeat("a", Costliest-1) + "c"
	for name, test := range map[string]struct {
		args   []ref.Val
		states int
		want   string // the value or the error
	}{
		"a match":              {[]ref.Val{types.String("abc"), types.String(pattern)}, 7, "true"},
		"no match":             {[]ref.Val{types.String("abx"), types.String(pattern)}, 7, "false"},
		"the longest text":     {[]ref.Val{types.String(longest[1:]), types.String(pattern)}, statesPerUnit - 1, "true"},
		"one more":             {[]ref.Val{types.String(longest), types.String(pattern)}, statesPerUnit - 1, "the text is too long for the pattern of matches"},
		"more states":          {[]ref.Val{types.String(longest[1:]), types.String(pattern)}, 2*statesPerUnit - 1, "the text is too long for the pattern of matches"},
		"a number":             {[]ref.Val{types.Int(1), types.String(pattern)}, 7, "no such overload"},
		"no text to be judged": {[]ref.Val{types.String(pattern)}, 7, "no such overload"},
	} {
		var args []interpreter.InterpretableV2
		for _, arg := range test.args {
			args = append(args, interpreter.NewConstValue(2, arg).(interpreter.InterpretableV2))
		}
		call, err := matching(map[string]int{pattern: test.states}).Factory(interpreter.NewCall(1, "matches", "matches_string", args, nil), pattern)
		if err != nil {
			t.Fatal(err)
		}
		got := call.Eval(interpreter.EmptyActivation())
		text := ""
		if types.IsError(got) {
			text = got.(*types.Err).Error()
		} else if text = "false"; got == types.True {
			text = "true"
		}
		if text != test.want {
			t.Errorf("%s: %q, want %q", name, text, test.want)
		}
	}
	if _, err := matching(nil).Factory(interpreter.NewCall(1, "matches", "matches_string", nil, nil), "("); err == nil {
		t.Error("an invalid pattern was compiled")
	}
}
