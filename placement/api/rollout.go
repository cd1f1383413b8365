package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A RolloutGate is a check that has to pass after a stage of a staged update run. Tasks of type Gate refer to it by name. KubeFleet
// does not have the kind.
type RolloutGate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what is checked.
	Spec RolloutGateSpec `json:"spec"`
}

// A RolloutGateSpec says what is checked. Exactly one of its fields is set.
type RolloutGateSpec struct {
	// Soak passes when the clusters of the stage have been available for a time.
	Soak *SoakGate `json:"soak,omitempty"`
	// Prometheus passes when the result of a query satisfies a condition.
	Prometheus *PrometheusGate `json:"prometheus,omitempty"`
	// HTTP passes when an endpoint answers as expected.
	HTTP *HTTPGate `json:"http,omitempty"`
	// Objects passes when a condition is true of objects of the placement on every cluster of the stage.
	Objects *ObjectsGate `json:"objects,omitempty"`
	// Job passes when a Job has completed on the clusters of the stage.
	Job *JobGate `json:"job,omitempty"`
}

// Text says what has to be so, such as "available for 1h".
func (s *RolloutGateSpec) Text() string {
	switch {
	case s.Soak != nil:
		return "available for " + s.Soak.Duration
	case s.Prometheus != nil:
		return s.Prometheus.Query + " " + s.Prometheus.Condition + s.Prometheus.forTime()
	case s.HTTP != nil && s.HTTP.Condition != "":
		return fmt.Sprintf("%s answers %d and %s%s", s.HTTP.URL, s.HTTP.Expected(), s.HTTP.Condition, s.HTTP.forTime())
	case s.HTTP != nil:
		return fmt.Sprintf("%s answers %d%s", s.HTTP.URL, s.HTTP.Expected(), s.HTTP.forTime())
	case s.Objects != nil:
		return fmt.Sprintf("%s of %s%s", s.Objects.Condition, s.Objects.Text(), s.Objects.forTime())
	case s.Job != nil && s.Job.Clusters > 0:
		return fmt.Sprintf("a Job in namespace %s completes on %d of the clusters", s.Job.Namespace, s.Job.Clusters)
	case s.Job != nil:
		return fmt.Sprintf("a Job in namespace %s completes on each cluster", s.Job.Namespace)
	}
	return "nothing can pass"
}

// Schedule says how often a gate is asked that is answered by others than gitfleet; nil for other gates.
func (s *RolloutGateSpec) Schedule() *GateSchedule {
	switch {
	case s.Prometheus != nil:
		return &s.Prometheus.GateSchedule
	case s.HTTP != nil:
		return &s.HTTP.GateSchedule
	case s.Objects != nil:
		return &s.Objects.GateSchedule
	case s.Job != nil:
		return &GateSchedule{Interval: cmp.Or(s.Job.Interval, defaultJobInterval), ToleratedFailures: s.Job.ToleratedFailures}
	}
	return nil
}

// Address returns the URL that the gate requests, and the path of its field; both are empty if the gate requests none.
func (s *RolloutGateSpec) Address() (field, address string) {
	switch {
	case s.Prometheus != nil:
		return "spec.prometheus.address", s.Prometheus.Address
	case s.HTTP != nil:
		return "spec.http.url", s.HTTP.URL
	}
	return "", ""
}

// An ObjectsGate passes when a condition has been true of objects of the placement, on every cluster of the stage, for a time.
type ObjectsGate struct {
	// APIVersion is that of the objects, such as apps/v1; any version of the group is meant.
	APIVersion string `json:"apiVersion"`
	// Kind is that of the objects, such as Deployment.
	Kind string `json:"kind"`
	// Namespace is that of the objects; those in all namespaces are meant without it.
	Namespace string `json:"namespace,omitempty"`
	// Name is that of the objects; all of the kind that the placement has on a cluster are meant without it.
	Name string `json:"name,omitempty"`
	// Condition is a CEL expression that has to be true of each object, in which object is the object as it is in Git, with the status,
	// the generation and the creation time that the cluster reports.
	Condition    string `json:"condition"`
	GateSchedule `json:",inline"`
}

// Text names the objects, such as "each Deployment" or "Deployment web/web".
func (g *ObjectsGate) Text() string {
	switch {
	case g.Name == "" && g.Namespace == "":
		return "each " + g.Kind
	case g.Name == "":
		return "each " + g.Kind + " in namespace " + g.Namespace
	case g.Namespace == "":
		return g.Kind + " " + g.Name
	}
	return g.Kind + " " + g.Namespace + "/" + g.Name
}

// Has reports whether an object is one of them.
func (g *ObjectsGate) Has(id ID) bool {
	group, _, found := strings.Cut(g.APIVersion, "/")
	if !found {
		group = ""
	}
	return id.Group == group && id.Kind == g.Kind && (g.Namespace == "" || id.Namespace == g.Namespace) && (g.Name == "" || id.Name == g.Name)
}

// A JobGate passes when a Job has completed on clusters of the stage.
type JobGate struct {
	// Namespace is the namespace of the Job. It must exist on the clusters.
	Namespace string `json:"namespace"`
	// Template is the template of the Job, with metadata and spec, as in a CronJob.
	Template json.RawMessage `json:"template"`
	// Clusters is on how many clusters of the stage the Job runs: the first in the order in which they are updated. It runs on all of
	// them without it.
	Clusters int `json:"clusters,omitempty"`
	// Timeout is how long the Job may run on a cluster, such as 10m; 30m by default.
	Timeout string `json:"timeout,omitempty"`
	// Interval is how often the Job is checked, such as 1m; 10s by default.
	Interval string `json:"interval,omitempty"`
	// ToleratedFailures is the number of Jobs that may fail before the gate fails; 0 by default. A failed Job is run again on its cluster.
	ToleratedFailures int `json:"toleratedFailures,omitempty"`
}

// The defaults of a JobGate.
const (
	defaultJobInterval = "10s"
	defaultJobTimeout  = "30m"
)

// Deadline returns how long the Job may run on a cluster.
func (g *JobGate) Deadline() time.Duration {
	d, _ := time.ParseDuration(cmp.Or(g.Timeout, defaultJobTimeout)) // validated when it was loaded
	return d
}

// A SoakGate passes while all clusters of the stage have been available without an interruption for a time.
type SoakGate struct {
	// Duration is that time, such as 1h30m.
	Duration string `json:"duration"`
}

// For is how long the clusters have to be available.
func (g *SoakGate) For() time.Duration {
	d, _ := time.ParseDuration(g.Duration) // validated when it was loaded
	return d
}

// A GateSchedule says how often a gate is asked, and which answers let it pass or fail.
type GateSchedule struct {
	// Interval is the time between two questions, such as 30s; 1m by default.
	Interval string `json:"interval,omitempty"`
	// Duration is for how long the answers have to be good, such as 15m; one good answer is enough without it.
	Duration string `json:"duration,omitempty"`
	// ToleratedFailures is how many bad answers the gate may get before it fails; 0 by default.
	ToleratedFailures int `json:"toleratedFailures,omitempty"`
}

// DefaultGateInterval is the time between two questions of a gate that names none.
const DefaultGateInterval = time.Minute

// Every is the time between two questions.
func (s *GateSchedule) Every() time.Duration {
	if s.Interval == "" {
		return DefaultGateInterval
	}
	d, _ := time.ParseDuration(s.Interval) // validated when it was loaded
	return d
}

// For is how long the answers have to be good.
func (s *GateSchedule) For() time.Duration {
	d, _ := time.ParseDuration(s.Duration) // validated when it was loaded
	return d
}

func (s *GateSchedule) forTime() string {
	if s.Duration == "" {
		return ""
	}
	return " for " + s.Duration
}

// A PrometheusGate passes when every value of the result of a query has satisfied a condition for a time.
type PrometheusGate struct {
	// Address is that of the server, such as https://prometheus.example.com, without /api/v1. The configuration of the daemon has to
	// allow it.
	Address string `json:"address"`
	// Query is in PromQL. Its result is a scalar or a vector.
	Query string `json:"query"`
	// Condition is an operator and a number, such as "< 0.01". The operators are <, <=, >, >=, == and !=.
	Condition    string `json:"condition"`
	GateSchedule `json:",inline"`
}

// An HTTPGate passes when an endpoint has answered as expected for a time.
type HTTPGate struct {
	// URL is what is requested with GET, such as https://checks.example.com/ready?service=web. The configuration of the daemon has to
	// allow it.
	URL string `json:"url"`
	// Status is the expected status code; 200 by default.
	Status int `json:"status,omitempty"`
	// Condition is a CEL expression that has to be true of the answer, in which response.body is the decoded JSON, and response.status
	// the status code.
	Condition    string `json:"condition,omitempty"`
	GateSchedule `json:",inline"`
}

// Expected is the expected status code.
func (g *HTTPGate) Expected() int {
	if g.Status == 0 {
		return 200
	}
	return g.Status
}

// A Threshold is a condition on a number.
type Threshold struct {
	operator string
	number   float64
}

// thresholdOperators are read in this order, since some begin with others.
var thresholdOperators = []string{"<=", ">=", "==", "!=", "<", ">"}

// ParseThreshold parses an operator and a number, such as "< 0.01".
func ParseThreshold(text string) (Threshold, error) {
	for _, operator := range thresholdOperators {
		rest, found := strings.CutPrefix(strings.TrimSpace(text), operator)
		if !found {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
		if err != nil || math.IsNaN(n) {
			break
		}
		return Threshold{operator, n}, nil
	}
	return Threshold{}, fmt.Errorf(`%q is not an operator and a number; write for example "< 0.01"`, text)
}

// Holds reports whether a number satisfies the condition.
func (t Threshold) Holds(n float64) bool {
	switch t.operator {
	case "<":
		return n < t.number
	case "<=":
		return n <= t.number
	case ">":
		return n > t.number
	case ">=":
		return n >= t.number
	case "==":
		return n == t.number
	case "!=":
		return n != t.number
	}
	return false
}

// CheckAddress returns what is wrong with the address of a server that a gate asks.
func CheckAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return fmt.Errorf("%q is not an address such as https://prometheus.example.com", address)
	case u.User != nil:
		return fmt.Errorf("it has credentials; write them into the configuration of the daemon")
	case u.Fragment != "":
		return fmt.Errorf("it has a fragment; remove what follows #")
	case u.Path != "" && path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") && u.Path != "/" || u.RawPath != "" || strings.Contains(u.Path, `\`):
		return fmt.Errorf("its path is not in its shortest form; write it without .., // and escaped slashes")
	}
	return nil
}

// AddressWithin reports whether an address is that of an allowed one, or below its path. Both are as CheckAddress wants them.
func AddressWithin(address, allowed string) bool {
	a, err := url.Parse(address)
	b, err2 := url.Parse(allowed)
	if err != nil || err2 != nil || CheckAddress(address) != nil || a.Scheme != b.Scheme || !strings.EqualFold(a.Hostname(), b.Hostname()) || portOf(a) != portOf(b) {
		return false
	}
	base := strings.TrimSuffix(b.Path, "/")
	return a.Path == base || strings.HasPrefix(a.Path, base+"/")
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// A RolloutWindow says when clusters may get new content. KubeFleet does not have the kind.
type RolloutWindow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says when, and for what.
	Spec RolloutWindowSpec `json:"spec"`
}

// A RolloutWindowSpec says when new content may come. It is for the clusters that match the one
// selector, for the placements that match the other; an absent selector matches all.
type RolloutWindowSpec struct {
	// PlacementSelector matches the labels of placements.
	PlacementSelector *metav1.LabelSelector `json:"placementSelector,omitempty"`
	// ClusterSelector matches the labels of clusters.
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// Allow are the periods in which new content may come. If none of the windows for a cluster has
	// any, it may come at all times that are not excluded.
	Allow []WindowPeriod `json:"allow,omitempty"`
	// Exclude are the periods in which no new content comes, whatever is allowed.
	Exclude []WindowPeriod `json:"exclude,omitempty"`
	// Overrun says what becomes of a rollout that is under way when the window closes; Finish by default.
	Overrun WindowOverrun `json:"overrun,omitempty"`
	// MaxAge is how long content may wait for the window before that is reported, such as 336h; never by default.
	MaxAge string `json:"maxAge,omitempty"`
}

// A WindowPeriod is a time that comes again and again.
type WindowPeriod struct {
	// Schedule is when it begins, as a cron expression with five fields.
	Schedule string `json:"schedule"`
	// Duration is how long it lasts, such as 2h or 90m.
	Duration string `json:"duration"`
	// TimeZone is the time zone of the schedule, such as Europe/Paris; UTC by default.
	TimeZone string `json:"timeZone,omitempty"`
}

// A WindowOverrun says what becomes of a rollout that is under way when a window closes.
type WindowOverrun string

// The values of overrun.
const (
	// OverrunFinish lets a rollout finish that has reached a cluster for which the window is.
	OverrunFinish WindowOverrun = "Finish"
	// OverrunStop keeps the clusters that it has not reached as they are until the window opens again.
	OverrunStop WindowOverrun = "Stop"
)

// Earliest returns the earlier of two times; the zero time means none.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
