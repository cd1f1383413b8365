// Package expression asks a question of an object: a CEL expression over it,
// which answers yes or no.
//
// An expression sees nothing but the object, can change nothing, and may cost
// only so much: whoever writes manifests may be trusted with it.
package expression

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// The limits of an expression: the length of its text, and what one answer may
// cost in CEL's own units, of which a comparison is one.
const (
	Longest   = 4 << 10
	Costliest = 100_000
)

// An Expression is ready to be asked. It may be used by several goroutines.
type Expression struct{ program cel.Program }

// Compile reads an expression, in which object is the object as it is on the
// member. The error says in one line what is wrong, and where.
func Compile(text string) (*Expression, error) {
	if len(text) > Longest {
		return nil, fmt.Errorf("it has %d characters, more than %d", len(text), Longest)
	}
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("it is empty")
	}
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.OptionalTypes())
	if err != nil {
		return nil, err
	}
	tree, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, first(issues)
	}
	if t := tree.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("it gives a %s, and must give a bool: true if the object is available", t)
	}
	program, err := env.Program(tree, cel.CostLimit(Costliest), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, err
	}
	return &Expression{program}, nil
}

// first is the first of several issues: the others often follow from it.
func first(issues *cel.Issues) error {
	all := issues.Errors()
	if len(all) == 0 {
		return issues.Err()
	}
	at := all[0].Location
	return fmt.Errorf("line %d, column %d: %s", at.Line(), at.Column()+1, strings.TrimSuffix(strings.ReplaceAll(all[0].Message, "\n", " "), " (in container '')"))
}

var errCost = fmt.Errorf("it costs more than %d to answer; ask for less", Costliest)

// Holds answers for one object, which is not changed. An error, such as of a
// field that is not there, may quote values of the object.
func (e *Expression) Holds(object map[string]any) (bool, error) {
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
