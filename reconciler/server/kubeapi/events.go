package kubeapi

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/printer"
	"github.com/gitfleet/gitfleet/reconciler/server/store"
	"github.com/gitfleet/gitfleet/reconciler/status"
	"github.com/gitfleet/gitfleet/reconciler/status/metadata"
)

// component is the source of all events, as kubectl describe shows it.
const component = "placement-controller"

var eventColumns = []printer.Column{
	eventColumn("Last Seen", "Time since the event last occurred.", 0, func(r printer.Row, e *status.Event) string {
		return r.Since(e.Last)
	}),
	eventColumn("Type", "Normal or Warning.", 0, func(_ printer.Row, e *status.Event) string { return e.Type }),
	eventColumn("Reason", "Reason of the event, as one word.", 0, func(_ printer.Row, e *status.Event) string { return e.Reason }),
	eventColumn("Object", "Object that the event is about.", 0, func(_ printer.Row, e *status.Event) string {
		return strings.ToLower(e.Kind) + "/" + e.Name
	}),
	eventColumn("Source", "Component that reported the event.", 1, func(printer.Row, *status.Event) string { return component }),
	eventColumn("Message", "Description of the event.", 0, func(_ printer.Row, e *status.Event) string { return eventMessage(e) }),
	eventColumn("First Seen", "Time since the event first occurred.", 1, func(r printer.Row, e *status.Event) string {
		return r.Since(e.First)
	}),
	eventColumn("Count", "Number of occurrences.", 1, func(_ printer.Row, e *status.Event) string { return strconv.Itoa(int(e.Count)) }),
	wideName,
}

// wideName is the column of the name, in wide tables only: names of events are generated.
var wideName = func() printer.Column {
	c := printer.Name
	c.Priority = 1
	return c
}()

func eventColumn(name, description string, priority int32, cell func(printer.Row, *status.Event) string) printer.Column {
	return printer.Text(name, description, priority, func(r printer.Row) string {
		if e, ok := r.Value.(*status.Event); ok {
			return cell(r, e)
		}
		return ""
	})
}

// eventMessage returns the message of an event. It includes the cluster, for which events have
// no field; that a cluster was scheduled names it anyway.
func eventMessage(e *status.Event) string {
	if e.Cluster == "" || e.Kind == "MemberCluster" || e.Reason == api.ScheduledReason {
		return e.Message
	}
	return e.Cluster + ": " + e.Message
}

// An eventObject is an event in one of its two kinds.
type eventObject struct {
	*status.Event
	name string
	core bool
}

func (e eventObject) Key() (string, string) { return e.namespace(), e.name }

// Events about cluster-scoped objects are in this namespace.
func (e eventObject) namespace() string { return cmp.Or(e.Namespace, metav1.NamespaceDefault) }

func (e eventObject) Same(old store.Source) bool {
	was := old.(eventObject)
	return was.Count == e.Count && was.First.Equal(e.First) && was.Last.Equal(e.Last)
}

// Transient implements store.Transient.
func (e eventObject) Transient() {}

func (e eventObject) Object() *store.Object {
	meta := metav1.ObjectMeta{
		Name: e.name, Namespace: e.namespace(), CreationTimestamp: metav1.NewTime(e.First),
		UID: metadata.UID(e.First, "Event", e.namespace(), e.name),
	}
	o := &store.Object{ObjectMeta: meta, Value: e.Event, TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, Field: e.field}
	if e.core {
		o.Content = func(meta metav1.ObjectMeta) (any, error) { return e.v1(o.TypeMeta, meta, e.regarding()), nil }
		return o
	}
	o.APIVersion = eventsv1.SchemeGroupVersion.String()
	o.Content = func(meta metav1.ObjectMeta) (any, error) { return e.events(o.TypeMeta, meta, e.regarding()), nil }
	return o
}

// coreFields and otherFields are the selectable fields of the two kinds.
var coreFields, otherFields = eventFields("involvedObject", "source"), eventFields("regarding", "reportingController")

func eventFields(about, from string) map[string]eventField {
	fromUs := func(eventObject) string { return component }
	nothing := func(eventObject) string { return "" }
	return map[string]eventField{
		about + ".apiVersion":      func(e eventObject) string { return e.APIVersion },
		about + ".kind":            func(e eventObject) string { return e.Kind },
		about + ".namespace":       func(e eventObject) string { return e.Namespace },
		about + ".name":            func(e eventObject) string { return e.Name },
		about + ".uid":             func(e eventObject) string { return string(e.UID) },
		about + ".resourceVersion": nothing,
		about + ".fieldPath":       nothing,
		"reason":                   func(e eventObject) string { return e.Reason },
		"type":                     func(e eventObject) string { return e.Type },
		from:                       fromUs,
		"reportingComponent":       fromUs,
	}
}

// field reads a selectable field. Fields are not stored, since there are many events and few
// are selected.
func (e eventObject) field(name string) (value string, ok bool) {
	all := otherFields
	if e.core {
		all = coreFields
	}
	of, ok := all[name]
	if !ok {
		return "", false
	}
	return of(e), true
}

func (e eventObject) regarding() corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name, UID: types.UID(e.UID)}
}

func (e eventObject) v1(kind metav1.TypeMeta, meta metav1.ObjectMeta, about corev1.ObjectReference) *corev1.Event {
	return &corev1.Event{
		TypeMeta: kind, ObjectMeta: meta, InvolvedObject: about, Reason: e.Reason, Message: eventMessage(e.Event), Type: e.Type,
		Source: corev1.EventSource{Component: component}, Count: e.Count,
		FirstTimestamp: metav1.NewTime(e.First), LastTimestamp: metav1.NewTime(e.Last),
		ReportingController: component,
	}
}

func (e eventObject) events(kind metav1.TypeMeta, meta metav1.ObjectMeta, about corev1.ObjectReference) *eventsv1.Event {
	return &eventsv1.Event{
		TypeMeta: kind, ObjectMeta: meta, Regarding: about, Reason: e.Reason, Note: eventMessage(e.Event), Type: e.Type,
		EventTime: metav1.NewMicroTime(e.First), ReportingController: component, ReportingInstance: component, Action: e.Reason,
		DeprecatedSource: corev1.EventSource{Component: component}, DeprecatedCount: e.Count,
		DeprecatedFirstTimestamp: metav1.NewTime(e.First), DeprecatedLastTimestamp: metav1.NewTime(e.Last),
	}
}

// eventObjects returns events as objects. The name of an event is that of its object with the event's number. Events are kept in
// their order, with new ones at the end: those that are among the earlier objects, which may be nil, stay the same.
func eventObjects(events []status.Event, earlier []eventObject) []eventObject {
	out := make([]eventObject, 0, len(events))
	for i := range events {
		if at := slices.IndexFunc(earlier, func(o eventObject) bool { return *o.Event == events[i] }); at >= 0 {
			out, earlier = append(out, earlier[at]), earlier[at+1:]
			continue
		}
		e := events[i] // copied, since a pointer into the list would keep the whole list in memory
		out = append(out, eventObject{Event: &e, name: e.Name + "." + e.Key().Number()[:16]})
	}
	return out
}

// eventSources returns events sorted by name, once for each kind.
func eventSources(events []eventObject) (core, other []store.Source) {
	core, other = make([]store.Source, 0, len(events)), make([]store.Source, 0, len(events))
	for _, e := range events {
		other = append(other, e)
		e.core = true
		core = append(core, e)
	}
	for _, sources := range [][]store.Source{core, other} {
		slices.SortFunc(sources, store.Compare)
	}
	return core, other
}

// eventKind returns one of the two kinds of events in Kubernetes, with its selectable fields.
// Each has separate objects in the store, made from the same events.
func eventKind(group string, fields map[string]eventField) *kind {
	return &kind{
		group: group, name: "Event", plural: "events", singular: "event", versions: []string{"v1"}, namespaced: true,
		short: []string{"ev"}, generated: true, columns: eventColumns, fields: slices.Sorted(maps.Keys(fields)),
	}
}

// An eventField reads a field for selectors.
type eventField func(eventObject) string
