// Package expression evaluates CEL expressions that say whether an object is available, a cluster selected, or an answer good.
//
// An expression can read only the object and change nothing. The sizes of its text, its patterns
// and the object are limited, and so is the cost of an evaluation. Every byte that is read or
// made adds to the cost, which therefore limits memory and time too. There is no deadline, since
// the result must not depend on the load of the machine.
package expression

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"

	"github.com/gitfleet/gitfleet/placement/api"
)

// The limits of an expression.
const (
	// Longest is the maximum length of an expression in bytes.
	Longest = 4 << 10
	// LargestObject is the maximum size of an object in bytes.
	LargestObject = 8 << 20
)

const (
	// maxOptMaps limits the uses of optMap and optFlatMap, each of which duplicates its target.
	maxOptMaps = 4
)

// An Expression is a compiled expression. It is safe for concurrent use.
type Expression struct {
	program  cel.Program
	variable string
	// likely is the estimated maximum cost for an ordinary object.
	likely uint64
}

// Compile compiles an expression, in which object is the live object on the member. The error is
// one line with the position and the reason.
func Compile(text string) (*Expression, error) {
	return compile(text, "object", "the object is available")
}

// CompileSelector compiles an expression that selects clusters, in which cluster has name, labels and properties.
func CompileSelector(text string) (*Expression, error) {
	return compile(text, "cluster", "the cluster is selected")
}

// CompileResponse compiles an expression over the answer to a request, in which response has status and body.
func CompileResponse(text string) (*Expression, error) {
	return compile(text, "response", "the answer is good")
}

// CompileGate compiles an expression over an object that a gate of a staged run looks at.
func CompileGate(text string) (*Expression, error) {
	return compile(text, "object", "the object is good")
}

// compile compiles an expression over a variable. It is true if meaning holds.
func compile(text, variable, meaning string) (*Expression, error) {
	if len(text) > Longest {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(text), Longest)
	}
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("it is empty")
	}
	if n := strings.Count(text, "optMap") + strings.Count(text, "optFlatMap"); n > maxOptMaps {
		return nil, fmt.Errorf("it uses optMap and optFlatMap %d times, more than %d", n, maxOptMaps)
	}
	env, err := cel.NewEnv(cel.Variable(variable, cel.DynType), cel.OptionalTypes())
	if err != nil {
		return nil, err
	}
	tree, issues := env.Parse(text)
	if issues.Err() != nil {
		return nil, first(env, variable, issues)
	}
	states, err := inspect(tree)
	if err != nil {
		return nil, err
	}
	if tree, issues = env.Check(tree); issues.Err() != nil {
		return nil, first(env, variable, issues)
	}
	if t := tree.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("it gives %s, and must give a bool: true if %s", api.WithArticle(t.String()), meaning)
	}
	estimate, err := env.EstimateCost(tree, ordinary{states})
	if err != nil {
		return nil, err
	}
	if estimate.Min > Costliest {
		return nil, fmt.Errorf("it costs at least %d to evaluate, more than %d; %s", estimate.Min, Costliest, cheaper)
	}
	program, err := env.Program(tree, cel.CostLimit(Costliest), cel.CostTracking(meter{states}),
		cel.CustomDecoratorV2(meterConstructors), cel.OptimizeRegex(matching(states)))
	if err != nil {
		return nil, err
	}
	return &Expression{program, variable, estimate.Max}, nil
}

var (
	undeclared = regexp.MustCompile(`undeclared reference to '(\w+)'`)
	assignment = regexp.MustCompile(`token recognition error at: '= ?`)
)

// first returns the first of several issues, since the others often result from it, with the name that was probably meant.
func first(env *cel.Env, variable string, issues *cel.Issues) error {
	all := issues.Errors()
	if len(all) == 0 {
		return issues.Err()
	}
	text := strings.TrimSuffix(strings.ReplaceAll(all[0].Message, "\n", " "), " (in container '')")
	if assignment.MatchString(text) {
		text += "; write == to compare"
	}
	if found := undeclared.FindStringSubmatch(text); found != nil {
		if near := api.Closest(found[1], append(slices.Sorted(maps.Keys(env.Functions())), variable)); near != "" {
			text += "; " + api.DidYouMean(near)
		}
	}
	return located(all[0].Location, text)
}

const cheaper = "loop over fewer lists within each other, and compare fields instead of whole objects"

var (
	errCost = fmt.Errorf("it costs more than %d to evaluate for this object; %s", Costliest, cheaper)
	errSize = fmt.Errorf("the object is larger than %d MiB, the most that an expression is evaluated for", LargestObject>>20)
)

// Warning returns a warning that the expression may become too expensive; empty if there is
// none.
func (e *Expression) Warning() string {
	if e.likely <= Costliest {
		return ""
	}
	return fmt.Sprintf("it may cost more than %d to evaluate once lists have %d elements, and the object is not available then; %s", Costliest, ordinaryList, cheaper)
}

// Holds evaluates the expression for an object, without changing it. An error, for instance
// about a missing field, may quote values of the object.
func (e *Expression) Holds(object map[string]any) (bool, error) {
	if size(types.DefaultTypeAdapter.NativeToValue(object), LargestObject) > LargestObject {
		return false, errSize
	}
	answer, _, err := e.program.Eval(map[string]any{e.variable: object})
	switch {
	case err != nil && strings.Contains(err.Error(), "actual cost limit exceeded"):
		return false, errCost
	case err != nil:
		return false, err
	}
	holds, ok := answer.(types.Bool)
	if !ok {
		return false, errors.New("it gives " + api.WithArticle(answer.Type().TypeName()) + ", and must give a bool")
	}
	return bool(holds), nil
}
