package schema

import (
	"reflect"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// The valid values of fields of Kubernetes' types, which are no part of the Go types.
func init() {
	enum(corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)
	enum(corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	enum(corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyOnFailure, corev1.ContainerRestartPolicyNever)
	enum(corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)
	enum(corev1.URISchemeHTTP, corev1.URISchemeHTTPS)
	enum(corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone)
	enum(corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)
	enum(corev1.MountPropagationNone, corev1.MountPropagationHostToContainer, corev1.MountPropagationBidirectional)
	enum(corev1.PreemptLowerPriority, corev1.PreemptNever)
	enum(corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined)
	enum(corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch)
	enum(corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
	enum(corev1.TolerationOpExists, corev1.TolerationOpEqual, corev1.TolerationOpLt, corev1.TolerationOpGt)
	enum(corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt)
	enum(corev1.DoNotSchedule, corev1.ScheduleAnyway)
	enum(corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName)
	enum(corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP)
	enum(corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	enum(corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal)
	enum(corev1.IPv4Protocol, corev1.IPv6Protocol)
	enum(corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack)
	enum(corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod)
	enum(corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
	enum(corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle)
	enum(appsv1.RecreateDeploymentStrategyType, appsv1.RollingUpdateDeploymentStrategyType)
	enum(appsv1.RollingUpdateStatefulSetStrategyType, appsv1.OnDeleteStatefulSetStrategyType)
	enum(appsv1.RollingUpdateDaemonSetStrategyType, appsv1.OnDeleteDaemonSetStrategyType)
	enum(appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement)
	enum(batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)
	enum(batchv1.NonIndexedCompletion, batchv1.IndexedCompletion)
	enum(networkingv1.PathTypeExact, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific)
	enum(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress)
	enum(policyv1.IfHealthyBudget, policyv1.AlwaysAllow)
	enum(storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer)
	enum(autoscalingv2.ObjectMetricSourceType, autoscalingv2.PodsMetricSourceType, autoscalingv2.ResourceMetricSourceType, autoscalingv2.ContainerResourceMetricSourceType, autoscalingv2.ExternalMetricSourceType)
	enum(autoscalingv2.UtilizationMetricType, autoscalingv2.ValueMetricType, autoscalingv2.AverageValueMetricType)
	enum(admission.Ignore, admission.Fail)
	enum(admission.Exact, admission.Equivalent)
	enum(admission.SideEffectClassNone, admission.SideEffectClassNoneOnDryRun)
	enum(admission.OperationAll, admission.Create, admission.Update, admission.Delete, admission.Connect)
}

// enums are the valid values of fields of these types.
var enums = map[reflect.Type][]string{}

func enum[T ~string](values ...T) {
	for _, v := range values {
		enums[reflect.TypeFor[T]()] = append(enums[reflect.TypeFor[T]()], string(v))
	}
}

// enumFault returns what was expected if a value is not one of those allowed.
func enumFault(v any, allowed []string) string {
	want := "one of " + strings.Join(allowed, ", ")
	switch word, isString := v.(string); {
	case !isString:
		return want
	case slices.Contains(allowed, word):
		return ""
	case word == "":
		return want + ", or left out"
	default:
		want += ", not \"" + word + "\""
		if near := api.Closest(word, allowed); near != "" {
			want += "; " + api.DidYouMean(near)
		}
		return want
	}
}

// wordFault is enumFault for a type of Kubernetes, where an empty text means the default.
func wordFault(v any, allowed []string) string {
	if v == "" {
		return ""
	}
	return enumFault(v, allowed)
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
