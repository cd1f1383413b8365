package kubeapi

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gitfleet/gitfleet/reconciler/server/store"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// component is who events are from.
const component = "placement-controller"

// eventKinds are the two names that events have in Kubernetes. Each has its own
// objects in the store, made of the same events.
func eventKinds() []*kind {
	one := kind{
		name: "Event", plural: "events", singular: "event", versions: []string{"v1"}, namespaced: true,
		short: []string{"ev"}, columns: eventColumns, fields: slices.Sorted(maps.Keys(coreFields)),
	}
	other := one
	other.group, other.fields = eventsv1.GroupName, slices.Sorted(maps.Keys(otherFields))
	return []*kind{&one, &other}
}

var eventColumns = []column{
	eventColumn("Last Seen", "Time since it last happened.", 0, func(e *status.Event) string {
		return metatable.ConvertToHumanReadableDateType(metav1.NewTime(e.Last))
	}),
	eventColumn("Type", "Normal or Warning.", 0, func(e *status.Event) string { return e.Type }),
	eventColumn("Reason", "What happened, in a word.", 0, func(e *status.Event) string { return e.Reason }),
	eventColumn("Object", "What it happened to.", 0, func(e *status.Event) string {
		return strings.ToLower(e.Kind) + "/" + e.Name
	}),
	eventColumn("Source", "Who tells.", 1, func(e *status.Event) string { return component }),
	eventColumn("Message", "What happened.", 0, worded),
	eventColumn("First Seen", "Time since it first happened.", 1, func(e *status.Event) string {
		return metatable.ConvertToHumanReadableDateType(metav1.NewTime(e.First))
	}),
	eventColumn("Count", "How often it happened.", 1, func(e *status.Event) string { return strconv.Itoa(int(e.Count)) }),
	{nameColumn.wide(), nameColumn.cell},
}

func eventColumn(name, description string, priority int32, cell func(*status.Event) string) column {
	return text(name, description, priority, func(o *store.Object) any {
		if e, ok := o.Value.(*status.Event); ok {
			return cell(e)
		}
		return ""
	})
}

// worded is the message of an event, with the cluster it happened on: an Event has
// no other place for that.
func worded(e *status.Event) string {
	if e.Cluster == "" || e.Kind == "MemberCluster" || strings.Contains(e.Message, strconv.Quote(e.Cluster)) {
		return e.Message
	}
	return e.Cluster + ": " + e.Message
}

// happened is an event, in one of its two kinds.
type happened struct {
	*status.Event
	name string
	core bool
}

func (e happened) Key() (string, string) { return e.namespace(), e.name }

// Events about what lives in no namespace are in this one.
func (e happened) namespace() string { return cmp.Or(e.Namespace, metav1.NamespaceDefault) }

func (e happened) Same(old store.Source) bool {
	was := old.(happened)
	return was.Count == e.Count && was.First.Equal(e.First) && was.Last.Equal(e.Last)
}

func (e happened) Object() *store.Object {
	meta := metav1.ObjectMeta{
		Name: e.name, Namespace: e.namespace(), CreationTimestamp: metav1.NewTime(e.First),
		UID: status.UID(e.First, "Event", e.namespace(), e.name),
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

// An eventField reads of an event what it can be selected by.
type eventField func(happened) string

// coreFields and otherFields are what events can be selected by, in their two
// kinds.
var coreFields, otherFields = eventFields("involvedObject", "source"), eventFields("regarding", "reportingController")

func eventFields(about, from string) map[string]eventField {
	fromUs := func(happened) string { return component }
	nothing := func(happened) string { return "" }
	return map[string]eventField{
		about + ".apiVersion":      func(e happened) string { return e.APIVersion },
		about + ".kind":            func(e happened) string { return e.Kind },
		about + ".namespace":       func(e happened) string { return e.Namespace },
		about + ".name":            func(e happened) string { return e.Name },
		about + ".uid":             func(e happened) string { return string(e.UID) },
		about + ".resourceVersion": nothing,
		about + ".fieldPath":       nothing,
		"reason":                   func(e happened) string { return e.Reason },
		"type":                     func(e happened) string { return e.Type },
		from:                       fromUs,
		"reportingComponent":       fromUs,
	}
}

// field reads a field by which an event can be selected. They are not kept: there
// are many events, and few are selected.
func (e happened) field(name string) (value string, ok bool) {
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

func (e happened) regarding() corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name, UID: types.UID(e.UID)}
}

func (e happened) v1(kind metav1.TypeMeta, meta metav1.ObjectMeta, about corev1.ObjectReference) *corev1.Event {
	return &corev1.Event{
		TypeMeta: kind, ObjectMeta: meta, InvolvedObject: about, Reason: e.Reason, Message: worded(e.Event), Type: e.Type,
		Source: corev1.EventSource{Component: component}, Count: e.Count,
		FirstTimestamp: metav1.NewTime(e.First), LastTimestamp: metav1.NewTime(e.Last),
		ReportingController: component,
	}
}

func (e happened) events(kind metav1.TypeMeta, meta metav1.ObjectMeta, about corev1.ObjectReference) *eventsv1.Event {
	return &eventsv1.Event{
		TypeMeta: kind, ObjectMeta: meta, Regarding: about, Reason: e.Reason, Note: worded(e.Event), Type: e.Type,
		EventTime: metav1.NewMicroTime(e.First), ReportingController: component, ReportingInstance: component, Action: e.Reason,
		DeprecatedSource: corev1.EventSource{Component: component}, DeprecatedCount: e.Count,
		DeprecatedFirstTimestamp: metav1.NewTime(e.First), DeprecatedLastTimestamp: metav1.NewTime(e.Last),
	}
}

// told are the events of a report, sorted by name, once for each kind. The name
// of an event is that of its object, and a number that is its own.
func told(events []status.Event) (core, other []store.Source) {
	for _, one := range events {
		e := &one // of its own: what is kept of it must not keep the whole list
		h := happened{Event: e, name: e.Name + "." + e.Key().Number()[:16], core: true}
		core = append(core, h)
		h.core = false
		other = append(other, h)
	}
	for _, sources := range [][]store.Source{core, other} {
		slices.SortFunc(sources, store.Compare)
	}
	return core, other
}
