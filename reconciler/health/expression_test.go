package health

import (
	"errors"
	"testing"
)

// An expression is evaluated only once the controller has observed the newest spec.
func TestAsk(t *testing.T) {
	tests := map[string]struct {
		object string
		holds  bool
		err    error
		want   Health
	}{
		"it holds":         {"{metadata: {generation: 2}}", true, nil, Health{State: Available}},
		"it does not":      {"{metadata: {generation: 2}}", false, nil, Health{State: NotAvailableYet, Message: "its expression does not hold"}},
		"no answer":        {"{metadata: {generation: 2}}", true, errors.New("no such key: ready"), Health{State: NotAvailableYet, Message: "its expression cannot be evaluated: no such key: ready"}},
		"of the newest":    {"{metadata: {generation: 2}, status: {observedGeneration: 2}}", true, nil, Health{State: Available}},
		"of an older spec": {"{metadata: {generation: 2}, status: {observedGeneration: 1}}", true, nil, Health{State: NotAvailableYet, Message: "generation 2 not yet seen by its controller, the last was 1", Unseen: true}},
		"a strange status": {"{metadata: {generation: 2}, status: {observedGeneration: x}}", true, nil, Health{State: Available}},
		"no status at all": {"{metadata: {generation: 2}, status: 7}", true, nil, Health{State: Available}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := object(t, "{apiVersion: example.com/v1, kind: Gadget, "+test.object[1:])
			if got := Ask(o, func(map[string]any) (bool, error) { return test.holds, test.err }); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}
