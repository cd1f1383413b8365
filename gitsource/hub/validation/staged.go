package validation

import (
	"regexp"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
	"github.com/gitfleet/gitfleet/placement/api"
)

var (
	stageName   = regexp.MustCompile(`^[a-z0-9]+$`)
	concurrency = regexp.MustCompile(`^(100|[1-9][0-9]?)%$`)
	waitTime    = regexp.MustCompile(`^(?:(?:0|[1-9][0-9]*)(\.[0-9]+)?(?:s|m|h))+$`)
)

// DefaultStagedUpdateStrategy sets the defaults of a strategy.
func DefaultStagedUpdateStrategy(spec *api.StagedUpdateStrategySpec) {
	for i := range spec.Stages {
		if one := intstr.FromInt32(1); spec.Stages[i].MaxConcurrency == nil {
			spec.Stages[i].MaxConcurrency = &one
		}
	}
}

// CheckStagedUpdateStrategy validates a strategy of a version, whose defaults are set. In v1alpha1 a TimedWait may take no time.
func CheckStagedUpdateStrategy(r *document.Report, id api.ID, version string, annotations map[string]string, spec *api.StagedUpdateStrategySpec) {
	checkName(r, id.Name, "the name field cannot have length exceeding 63")
	checkAnnotations(r, annotations, strategyAnnotations)
	at := r.Field("spec", "stages")
	CheckLength(r, at, len(spec.Stages), 1, 31)
	var names []string
	for i := range spec.Stages {
		names = append(names, spec.Stages[i].Name)
		checkStage(r, at.At(i), &spec.Stages[i], version == "v1alpha1")
	}
	eachRepeated(names, func(i int, name string) {
		r.Rulef(at.At(i).Child("name"), "another stage is named %q; give each stage its own name", name)
	})
	checkReviewed(r, annotations, spec, names)
}

// checkReviewed checks the stages that reviews approve. names are those of all stages.
func checkReviewed(r *document.Report, annotations map[string]string, spec *api.StagedUpdateStrategySpec, names []string) {
	value, written := annotations[api.ApprovedByReviewAnnotation]
	named := api.StagesApprovedByReview(value)
	at := r.Field("metadata", "annotations", api.ApprovedByReviewAnnotation)
	if written && len(named) == 0 {
		r.Rulef(at, "it names no stage; write the names of stages, separated by commas, or leave the annotation out")
	}
	for _, name := range named {
		i := slices.IndexFunc(spec.Stages, func(s api.StageConfig) bool { return s.Name == name })
		switch {
		case i < 0:
			r.Rulef(at, "the strategy has no stage %q; %s", name, api.Suggest(name, names, "correct the name"))
		case !spec.Stages[i].NeedsApproval(true) && !spec.Stages[i].NeedsApproval(false):
			r.Rulef(at, "stage %s needs no approval; add a task of type Approval, or leave it out here", name)
		}
	}
}

func checkStage(r *document.Report, p *document.FieldPath, s *api.StageConfig, zero bool) {
	if len(s.Name) > 63 || !stageName.MatchString(s.Name) {
		r.Rulef(p.Child("name"), "%q is not the name of a stage: write 1 to 63 lowercase letters and digits", s.Name)
	}
	checkLabelSelector(r, p.Child("labelSelector"), s.LabelSelector, "the stage label selector is invalid")
	switch v := s.MaxConcurrency; {
	case v.Type == intstr.String && !concurrency.MatchString(v.StrVal):
		r.Rulef(p.Child("maxConcurrency"), "%q is invalid: write a whole number without quotes, or a percentage from 1%% to 100%%", v.StrVal)
	case v.Type == intstr.Int && v.IntVal < 1:
		r.Rulef(p.Child("maxConcurrency"), "maxConcurrency must be at least 1")
	}
	checkTasks(r, p.Child("beforeStageTasks"), s.BeforeStageTasks, true, zero)
	checkTasks(r, p.Child("afterStageTasks"), s.AfterStageTasks, false, zero)
}

// checkTasks validates tasks. zero says that a TimedWait may take no time.
func checkTasks(r *document.Report, p *document.FieldPath, tasks []api.StageTask, before, zero bool) {
	if before && len(tasks) > 1 {
		r.Rulef(p, "beforeStageTasks can have at most one task; remove all but one")
	}
	for i, t := range tasks {
		wait := p.At(i).Child("waitTime")
		switch {
		case t.Type == api.TimedWait && before:
			r.Rulef(p.At(i).Child("type"), "BeforeStageTaskType cannot be TimedWait; make it a task after the previous stage")
		case t.Type == api.GateTask && before:
			r.Rulef(p.At(i).Child("type"), "a gate passes after a stage; make it a task after the previous stage")
		case t.Type == api.GateTask && t.WaitTime != "":
			r.Rulef(wait, "is for tasks of type TimedWait; remove it")
		case t.Type != api.GateTask && t.GateName != "":
			r.Rulef(p.At(i).Child("gateName"), "is for tasks of type Gate; remove it, or make it a task of that type")
		case t.Type == api.GateTask:
			notEmpty(r, p.At(i).Child("gateName"), t.GateName)
			r.RecordLine(p.At(i).Child("gateName"))
		case t.Type == api.ApprovalTask && t.WaitTime != "":
			r.Rulef(wait, "AfterStageTaskType is Approval, waitTime is not allowed; remove it, or make it a task of type TimedWait")
		case t.Type == api.TimedWait && t.WaitTime == "":
			r.Rulef(wait, "AfterStageTaskType is TimedWait, waitTime is required; write for example 1h")
		case t.Type == api.TimedWait:
			if d, err := time.ParseDuration(t.WaitTime); err != nil || d < 0 || d == 0 && !zero || !waitTime.MatchString(t.WaitTime) {
				r.Rulef(wait, "%q is not a positive duration; write for example 30m or 1h30m", t.WaitTime)
			}
		}
		same := func(o api.StageTask) bool { return o.Type == t.Type && o.GateName == t.GateName }
		if t.Type == api.GateTask && !before && slices.IndexFunc(tasks, same) < i {
			r.Rulef(p.At(i), "another task waits for the gate %s; remove one", t.GateName)
		} else if !before && slices.IndexFunc(tasks, same) < i {
			r.Rulef(p.At(i), "afterStageTasks cannot have two tasks of the same type: %s; remove one", t.Type)
		}
	}
}

// CheckStagedUpdateRun validates a run of a version. In v1alpha1 its content has to be named.
func CheckStagedUpdateRun(r *document.Report, id api.ID, version string, spec *api.StagedUpdateRunSpec) {
	checkName(r, id.Name, "metadata.name max length is 63")
	if version == "v1alpha1" {
		notEmpty(r, r.Field("spec", "resourceSnapshotIndex"), spec.ResourceSnapshotIndex)
	}
	notEmpty(r, r.Field("spec", "placementName"), spec.PlacementName)
	notEmpty(r, r.Field("spec", "stagedRolloutStrategyName"), spec.StrategyName)
	if n, err := strconv.Atoi(spec.ResourceSnapshotIndex); spec.ResourceSnapshotIndex != "" && (err != nil || n < 0) {
		r.Rulef(r.Field("spec", "resourceSnapshotIndex"),
			"invalid resource snapshot index `%s` provided, expected an integer >= 0; gitfleet history crp/NAME shows them as revisions", spec.ResourceSnapshotIndex)
	}
}

// CheckApprovalRequest validates an approval of a stage.
func CheckApprovalRequest(r *document.Report, id api.ID, spec *api.ApprovalRequestSpec) {
	before, after := api.ApprovalName(spec.Run, spec.Stage, true), api.ApprovalName(spec.Run, spec.Stage, false)
	if id.Name != before && id.Name != after {
		r.Rulef(r.Field("metadata", "name"), "must be %s or %s, which says what of the stage is approved", before, after)
	}
}
