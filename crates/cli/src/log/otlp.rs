//! Spans that are sent to an OpenTelemetry collector.

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tokio::runtime::{Builder, Runtime};
use tracing::Subscriber;
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::registry::LookupSpan;

/// Sends spans until this is dropped; those that are left are sent then.
pub(super) struct Spans {
    provider: SdkTracerProvider,
    /// It has the connections to the collector.
    _runtime: Runtime,
}

impl Spans {
    /// Sends spans to the collector at a URL, which need not be there yet.
    pub(super) fn begin(url: &str) -> Result<Self, String> {
        let failed =
            |error: &dyn std::fmt::Display| format!("spans cannot be sent to {url}: {error}");
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| failed(&error))?;
        let entered = runtime.enter();
        let exporter = SpanExporter::builder().with_tonic().with_endpoint(url).build();
        let exporter = exporter.map_err(|error| failed(&error))?;
        drop(entered);
        let resource = Resource::builder().with_service_name("alluvium").build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource)
            .build();
        Ok(Self { provider, _runtime: runtime })
    }

    /// The layer that they come from.
    pub(super) fn layer<S>(&self) -> OpenTelemetryLayer<S, SdkTracer>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        tracing_opentelemetry::layer().with_tracer(self.provider.tracer("alluvium"))
    }
}

impl Drop for Spans {
    fn drop(&mut self) {
        // A collector that is not there gets none.
        let _ = self.provider.shutdown();
    }
}
