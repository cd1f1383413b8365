// Package expression evaluates a CEL expression over an object, which says
// whether the object is available.
//
// An expression sees nothing but the object, can change nothing, and is bounded:
// its text, the patterns in it and the object in their size, and an evaluation in
// its cost. Every byte that an evaluation reads or makes counts towards that cost,
// so it bounds memory and time as well, the same on every machine: there is no
// deadline, since an answer that depends on how busy a machine is would be none.
package expression

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// The limits of an expression.
const (
	// Longest is how many bytes the text of an expression may have.
	Longest = 4 << 10
	// Costliest is what one evaluation may cost in CEL's own units: one for each
	// step, and one for each ten bytes that are read or made.
	Costliest = 100_000
	// LargestObject is how large an object may be, in bytes.
	LargestObject = 8 << 20
	// LargestPattern is how many states a regular expression may have.
	LargestPattern = 2_000
)

const (
	// mostOptMaps is how often an expression may use optMap and optFlatMap. Each use
	// is replaced by text that has its target twice.
	mostOptMaps = 4
	// mostLoops is how many macros an expression may have that go through a list,
	// and mostLiterals how many lists and maps, those that macros make included. It
	// takes very long to check an expression that nests hundreds of them.
	mostLoops    = 16
	mostLiterals = 64
)

// An Expression is ready to be evaluated. It may be used by several goroutines.
type Expression struct {
	program cel.Program
	// likely is the highest cost for an object of ordinary size.
	likely uint64
}

// Compile reads an expression, in which object is the object as it is on the
// member. The error says in one line what is wrong, and where.
func Compile(text string) (*Expression, error) {
	if len(text) > Longest {
		return nil, fmt.Errorf("it has %d characters, more than %d", len(text), Longest)
	}
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("it is empty")
	}
	if n := strings.Count(text, "optMap") + strings.Count(text, "optFlatMap"); n > mostOptMaps {
		return nil, fmt.Errorf("it uses optMap and optFlatMap %d times, more than %d", n, mostOptMaps)
	}
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.OptionalTypes())
	if err != nil {
		return nil, err
	}
	tree, issues := env.Parse(text)
	if issues.Err() != nil {
		return nil, first(issues)
	}
	states, err := inspect(tree)
	if err != nil {
		return nil, err
	}
	if tree, issues = env.Check(tree); issues.Err() != nil {
		return nil, first(issues)
	}
	if t := tree.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("it gives a %s, and must give a bool: true if the object is available", t)
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
	return &Expression{program, estimate.Max}, nil
}

// first is the first of several issues: the others often follow from it.
func first(issues *cel.Issues) error {
	all := issues.Errors()
	if len(all) == 0 {
		return issues.Err()
	}
	return located(all[0].Location, strings.TrimSuffix(strings.ReplaceAll(all[0].Message, "\n", " "), " (in container '')"))
}

func located(at interface {
	Line() int
	Column() int
}, message string) error {
	if at.Line() < 1 {
		return errors.New(message)
	}
	return fmt.Errorf("line %d, column %d: %s", at.Line(), at.Column()+1, message)
}

const cheaper = "loop over fewer lists within each other, and compare fields instead of whole objects"

var (
	errCost = fmt.Errorf("it costs more than %d to evaluate for this object; %s", Costliest, cheaper)
	errSize = fmt.Errorf("the object is larger than %d MiB, the most that an expression is evaluated for", LargestObject>>20)
)

// Warning says what is doubtful about the expression; it is empty if nothing is.
func (e *Expression) Warning() string {
	if e.likely <= Costliest {
		return ""
	}
	return fmt.Sprintf("it may cost more than %d to evaluate once lists have %d elements, and the object is not available then; %s", Costliest, ordinaryList, cheaper)
}

// Holds answers for one object, which is not changed. An error, such as of a
// field that is not there, may quote values of the object.
func (e *Expression) Holds(object map[string]any) (bool, error) {
	if size(types.DefaultTypeAdapter.NativeToValue(object), LargestObject) > LargestObject {
		return false, errSize
	}
	answer, _, err := e.program.Eval(map[string]any{"object": object})
	switch {
	case err != nil && strings.Contains(err.Error(), "actual cost limit exceeded"):
		return false, errCost
	case err != nil:
		return false, err
	}
	holds, ok := answer.(types.Bool)
	if !ok {
		return false, errors.New("it gives a " + answer.Type().TypeName() + ", and must give a bool")
	}
	return bool(holds), nil
}
