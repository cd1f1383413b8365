{{/* The name of all objects: that of the release, with gitfleet in it. */}}
{{- define "gitfleet.name" -}}
{{- if contains "gitfleet" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-gitfleet" (.Release.Name | trunc 31 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{- define "gitfleet.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "gitfleet.name" .) -}}
{{- end -}}

{{- define "gitfleet.selector" -}}
app: {{ include "gitfleet.name" . }}
{{- end -}}

{{- define "gitfleet.labels" -}}
{{ include "gitfleet.selector" . }}
app.kubernetes.io/name: gitfleet
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "gitfleet.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The configuration: what the values say, over what the chart sets. */}}
{{- define "gitfleet.config" -}}
{{- $config := dict
  "stateDir" "/var/lib/gitfleet"
  "listen" "0.0.0.0:8443"
  "server" (dict "certFile" "/etc/gitfleet/tls/tls.crt" "keyFile" "/etc/gitfleet/tls/tls.key" "delegated" true)
  "source" dict
-}}
{{- if or (gt (int .Values.replicas) 1) .Values.config.highAvailability -}}
{{- $_ := set $config "highAvailability" (dict "lease" (dict "name" (include "gitfleet.name" .))) -}}
{{- end -}}
{{- if .Values.secrets.git -}}
{{- $_ := set $config.source "tokenFile" "/etc/gitfleet/git/token" -}}
{{- end -}}
{{- mergeOverwrite $config (deepCopy .Values.config) | toYaml -}}
{{- end -}}

{{/* The namespace of the members' kubeconfigs, as the configuration has it; empty if they are in files. It
has no default, which an upgrade could move away from the Secrets: earlier charts had them in the namespace
of the release, and what renders a chart without the cluster, such as Argo CD, cannot look there. */}}
{{- define "gitfleet.membersNamespace" -}}
{{- $members := .Values.config.members | default dict -}}
{{- if not (or (hasKey $members "secretNamespace") $members.kubeconfigDir $members.kubeconfig) -}}
{{- fail (printf "config.members.secretNamespace: name the namespace of the Secrets with the kubeconfigs of the members: %[1]s-members, which has to exist, for a new installation; %[1]s for one whose Secrets are there already, as with earlier charts" .Release.Namespace) -}}
{{- end -}}
{{- $members.secretNamespace | default "" -}}
{{- end -}}

{{/* The Lease of the replicas, as the configuration has it; empty if there is none. Its namespace has no
default: earlier charts had it in that of the release, and replicas with different Leases would all lead. */}}
{{- define "gitfleet.lease" -}}
{{- $config := include "gitfleet.config" . | fromYaml -}}
{{- $lease := dig "highAvailability" "lease" dict $config -}}
{{- if $lease.name -}}
{{- if not $lease.namespace -}}
{{- fail (printf "config.highAvailability.lease.namespace: name the namespace of the Lease and of the ledger's Secrets, in which the daemon may read and write all Secrets: %[1]s-lease, which has to exist, for a new installation; %[1]s for replicas that run already, as with earlier charts" .Release.Namespace) -}}
{{- end -}}
{{- if .Values.persistence.existingClaim -}}
{{- fail "persistence.existingClaim: each replica needs a state directory of its own; leave it empty where replicas share a Lease" -}}
{{- end -}}
{{- toYaml $lease -}}
{{- end -}}
{{- end -}}

{{/* Whether the cluster has the Lease of the configuration; one in another cluster counts as existing. */}}
{{- define "gitfleet.leaseExists" -}}
{{- $lease := include "gitfleet.lease" . | fromYaml -}}
{{- if or (dig "highAvailability" "kubeconfig" "" .Values.config) (lookup "coordination.k8s.io/v1" "Lease" $lease.namespace $lease.name) -}}
true
{{- end -}}
{{- end -}}

{{/* Fails where an upgrade would leave the ledger of a daemon that runs, in its state directory or
beside its Lease. "helm template" finds no Deployment. */}}
{{- define "gitfleet.keepLedger" -}}
{{- $name := include "gitfleet.name" . -}}
{{- with lookup "apps/v1" "Deployment" .Release.Namespace $name -}}
{{- $strategy := dig "spec" "strategy" "type" "" . -}}
{{- if gt (int (dig "spec" "replicas" 1 .)) 0 -}}
{{- if and (include "gitfleet.lease" $) (eq $strategy "Recreate") -}}
{{- fail (printf "Deployment %s: a daemon without a Lease is running, and two would write to the members during the upgrade: export its state, scale it to 0 and import the state; see More than one replica in docs/install.md" $name) -}}
{{- else if and (include "gitfleet.lease" $) (eq $strategy "RollingUpdate") (not (include "gitfleet.leaseExists" $)) -}}
{{- fail (printf "Deployment %s: its replicas have another Lease than the configuration now names, and would write to the members beside those with the new one: scale it to 0 and copy the Secrets of the ledger; see More than one replica in docs/install.md" $name) -}}
{{- else if and (not (include "gitfleet.lease" $)) (eq $strategy "RollingUpdate") -}}
{{- fail (printf "Deployment %s: its replicas share a ledger, which a daemon without a Lease does not read: set config.highAvailability.lease.name to the name of their Lease to keep it, or export the state and scale it to 0" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
