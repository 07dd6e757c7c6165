{{- define "facets.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "facets.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "facets.labels" -}}
{{ include "facets.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "facets.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "facets.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* Health over gRPC. With TLS, which kubelet's gRPC probe does not support: the gateway's /readyz or an open port. */}}
{{- define "facets.probe" -}}
{{- if not .Values.tls.secretName -}}
grpc:
  port: 50051
{{- else if and .Values.http.enabled (not .Values.tls.clientCertificates) -}}
httpGet:
  path: /readyz
  port: http
  scheme: HTTPS
{{- else -}}
tcpSocket:
  port: grpc
{{- end }}
periodSeconds: {{ .Values.probes.periodSeconds }}
timeoutSeconds: {{ .Values.probes.timeoutSeconds }}
{{- end -}}
