package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
