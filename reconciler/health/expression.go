package health

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Ask judges the availability of a live object by its own expression instead of the rules of
// its kind; the rules still decide whether it has failed. While a controller has not observed
// the newest spec, the expression is not evaluated. The message may quote values of the object.
func Ask(live *unstructured.Unstructured, expression func(object map[string]any) (bool, error)) Health {
	f := fields{live: live}
	if _, says, _ := unstructured.NestedFieldNoCopy(live.Object, "status", "observedGeneration"); says {
		if unseen := f.observed(); unseen != "" && f.err == nil {
			return Health{State: NotAvailableYet, Message: unseen}
		}
	}
	holds, err := expression(live.Object)
	switch {
	case err != nil:
		return Unanswered(err)
	case !holds:
		return Health{State: NotAvailableYet, Message: "its expression does not hold", Failure: Of(live).Failure}
	default:
		return Health{State: Available}
	}
}

// Unanswered is the health of an object whose expression could not be evaluated.
func Unanswered(err error) Health {
	return Health{State: NotAvailableYet, Message: "its expression cannot be answered: " + err.Error()}
}
