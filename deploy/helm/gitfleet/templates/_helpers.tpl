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
  "members" (dict "secretNamespace" .Release.Namespace)
-}}
{{- if or (gt (int .Values.replicas) 1) .Values.config.highAvailability -}}
{{- $_ := set $config "highAvailability" (dict "lease" (dict "name" (include "gitfleet.name" .) "namespace" .Release.Namespace)) -}}
{{- end -}}
{{- if .Values.secrets.git -}}
{{- $_ := set $config.source "tokenFile" "/etc/gitfleet/git/token" -}}
{{- end -}}
{{- mergeOverwrite $config (deepCopy .Values.config) | toYaml -}}
{{- end -}}

{{/* The Lease of the replicas, as the configuration has it; empty if there is none. */}}
{{- define "gitfleet.lease" -}}
{{- $config := include "gitfleet.config" . | fromYaml -}}
{{- $lease := dig "highAvailability" "lease" dict $config -}}
{{- if $lease.name -}}
{{- if .Values.persistence.existingClaim -}}
{{- fail "persistence.existingClaim: each replica needs a state directory of its own; leave it empty where replicas share a Lease" -}}
{{- end -}}
{{- toYaml $lease -}}
{{- end -}}
{{- end -}}
