package schema

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// enums are the valid values of fields of these types.
var enums = map[reflect.Type][]string{}

func init() {
	enum(api.PickAll, api.PickN, api.PickFixed)
	enum(api.NamespaceOnly, api.NamespaceWithResources, api.NamespaceWithResourceSelectors)
	enum(api.ClusterScopeOnly, api.NamespaceAccessible)
	enum(api.TolerationEqual, api.TolerationExists)
	enum(api.NoSchedule)
	enum(api.DoNotSchedule, api.ScheduleAnyway)
	enum(api.Ascending, api.Descending)
	enum(api.PropertyGreaterThan, api.PropertyGreaterThanOrEqualTo, api.PropertyEqualTo,
		api.PropertyNotEqualTo, api.PropertyLessThan, api.PropertyLessThanOrEqualTo)
	enum(api.RollingUpdate, api.External)
	enum(api.PartialComparison, api.FullComparison)
	enum(api.ApplyAlways, api.ApplyIfNotDrifted)
	enum(api.ClientSideApply, api.ServerSideApply, api.ReportDiff)
	enum(api.TakeOverAlways, api.TakeOverIfNoDiff, api.TakeOverNever)
	enum(api.DeletePropagationDelete, api.DeletePropagationAbandon)
	enum(api.ReportBackDisabled, api.ReportBackMirror)
	enum(api.ReportBackOriginalResource, api.ReportBackWorkAPI)
	enum(api.DeleteValidationSkip, api.DeleteValidationStrict)
	enum(api.ClusterScoped, api.NamespaceScoped)
	enum(api.JSONPatchOverrideType, api.DeleteOverrideType)
	enum(api.JSONPatchAdd, api.JSONPatchRemove, api.JSONPatchReplace)
	enum(metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)
}

func enum[T ~string](values ...T) {
	for _, v := range values {
		enums[reflect.TypeFor[T]()] = append(enums[reflect.TypeFor[T]()], string(v))
	}
}
