package expression

import (
	"strings"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

const (
	// bytesPerUnit is the number of bytes that cost as much as one step.
	bytesPerUnit = 10
	// elementBytes is the size of an element of a list or a map in addition to its content.
	elementBytes = 16
	// timeZoneCost is the cost of looking up a time zone.
	timeZoneCost = 500
)

// constructor is the name under which a meter counts the construction of a list, a map or a
// message.
const constructor = "@construct"

// constantTime are the functions whose cost does not depend on the size of their arguments.
var constantTime = map[string]bool{
	operators.Index: true, operators.OptIndex: true, operators.OptSelect: true,
	operators.LogicalNot: true, operators.NotStrictlyFalse: true, operators.Conditional: true,
	"dyn": true, "type": true, "hasValue": true, "value": true, "or": true, "orValue": true,
	"optional.of": true, "optional.none": true,
}

// A meter computes the cost of calls from the sizes of their arguments and results. CEL's own
// estimate is a single step where the types of arguments are known only at evaluation, as they
// nearly always are here. So no value of an evaluation is larger than its cost.
type meter struct{ states map[string]int }

// CallCost implements interpreter.ActualCostEstimator.
func (m meter) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	n := uint64(1)
	switch {
	case constantTime[function]:
	case function == constructor:
		n = 10 + size(result, most)/bytesPerUnit
	case function == "matches":
		n += matchCost(args[0], m.states[text(args[1])])
	case function == "size" && isContainer(args[0]):
	case function == operators.In && isMap(args[1]):
		n += size(args[0], most) / bytesPerUnit
	case function == operators.Add && isAccumulator(args[0]):
		n += size(args[1], most) / bytesPerUnit // the list of a macro, which grows in place
	case strings.HasPrefix(function, "get") && len(args) == 2:
		n += timeZoneCost
	default:
		total := size(result, most)
		for _, a := range args {
			total += size(a, most)
		}
		n += total / bytesPerUnit
	}
	return &n
}

// most is the largest size that affects the cost.
const most = (Costliest + 1) * bytesPerUnit

func isContainer(v ref.Val) bool {
	_, isList := v.(traits.Lister)
	return isList || isMap(v)
}

func isMap(v ref.Val) bool {
	_, is := v.(traits.Mapper)
	return is
}

func isAccumulator(v ref.Val) bool {
	_, is := v.(traits.MutableLister)
	return is
}

// size returns the approximate size of a value and everything in it, in bytes. It stops counting
// above a limit.
func size(v ref.Val, limit uint64) uint64 {
	var n uint64
	switch v := v.(type) {
	case types.String:
		return uint64(len(v))
	case types.Bytes:
		return uint64(len(v))
	case *types.Optional:
		if v.HasValue() {
			return size(v.GetValue(), limit)
		}
	case traits.Mapper:
		for it := v.Iterator(); n <= limit && it.HasNext() == types.True; {
			key := it.Next()
			n += elementBytes + size(key, limit) + size(v.Get(key), limit)
		}
	case traits.Lister:
		for it := v.Iterator(); n <= limit && it.HasNext() == types.True; {
			n += elementBytes + size(it.Next(), limit)
		}
	}
	return n
}

// A metered constructor costs as much as a call that returns the same value.
type metered struct {
	interpreter.InterpretableConstructor
}

var _ interpreter.InterpretableCall = metered{}

// Function implements interpreter.InterpretableCall.
func (metered) Function() string { return constructor }

// OverloadID implements interpreter.InterpretableCall.
func (metered) OverloadID() string { return constructor }

// Args implements interpreter.InterpretableCall.
func (m metered) Args() []interpreter.InterpretableV2 { return m.InitVals() }

func meterConstructors(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	if c, is := i.(interpreter.InterpretableConstructor); is {
		return metered{c}, nil
	}
	return i, nil
}

// ordinaryList is the assumed length of the lists and strings of an ordinary object.
const ordinaryList = 50

// ordinary estimates the cost of an expression for an ordinary object before it is evaluated.
type ordinary struct{ states map[string]int }

// EstimateSize implements checker.CostEstimator.
func (ordinary) EstimateSize(checker.AstNode) *checker.SizeEstimate {
	return &checker.SizeEstimate{Max: ordinaryList}
}

// EstimateCallCost implements checker.CostEstimator.
func (ordinary) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}
