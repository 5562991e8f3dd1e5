//! Functions of a program's own: a scalar function and an aggregate, in a view that follows its table.
//!
//! ```sh
//! cargo run -p alluvium --example functions
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::Engine;
use alluvium::arrow::array::{ArrayRef, AsArray, StringArray};
use alluvium::arrow::datatypes::DataType;
use alluvium::arrow::util::pretty::pretty_format_batches;
use alluvium::functions::{
    Accumulator, AccumulatorArgs, AggregateUDFImpl, ColumnarValue, Result, ScalarUDF, ScalarValue,
    Signature, Volatility, create_udf,
};

/// The part after the @ of an address, in lower case; NULL without one.
fn domain() -> ScalarUDF {
    let call = |arguments: &[ColumnarValue]| {
        let columns = ColumnarValue::values_to_arrays(arguments)?;
        let addresses = columns[0].as_string::<i32>().iter();
        let domain = |address: &str| Some(address.split_once('@')?.1.to_lowercase());
        let domains: StringArray = addresses.map(|address| domain(address?)).collect();
        Ok(ColumnarValue::Array(Arc::new(domains)))
    };
    let text = DataType::Utf8;
    create_udf("domain", vec![text.clone()], text, Volatility::Immutable, Arc::new(call))
}

/// How often each text occurs, as `a: 2, b: 1`; empty for no rows.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Tally {
    signature: Signature,
}

impl AggregateUDFImpl for Tally {
    fn name(&self) -> &str {
        "tally"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    /// The value over no rows is not NULL, which has to be said.
    fn default_value(&self, _: &DataType) -> Result<ScalarValue> {
        Ok("".into())
    }

    fn is_nullable(&self) -> bool {
        false
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::<Counts>::default())
    }
}

#[derive(Debug, Default)]
struct Counts {
    counts: BTreeMap<String, u64>,
}

impl Accumulator for Counts {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        for text in columns[0].as_string::<i32>().iter().flatten() {
            *self.counts.entry(text.to_owned()).or_default() += 1;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let counts = self.counts.iter().map(|(text, count)| format!("{text}: {count}"));
        Ok(counts.collect::<Vec<_>>().join(", ").into())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for state in states[0].as_string::<i32>().iter().flatten() {
            for part in state.split(", ") {
                if let Some((text, count)) = part.rsplit_once(": ")
                    && let Ok(count) = count.parse::<u64>()
                {
                    *self.counts.entry(text.to_owned()).or_default() += count;
                }
            }
        }
        Ok(())
    }

    fn size(&self) -> usize {
        let keys: usize = self.counts.keys().map(String::capacity).sum();
        size_of_val(self) + keys + self.counts.len() * size_of::<(String, u64)>()
    }
}

fn main() -> alluvium::Result<()> {
    let tally = Tally { signature: Signature::exact(vec![DataType::Utf8], Volatility::Immutable) };
    let engine =
        Engine::builder().workers(1).function(domain()).aggregate(tally).open_in_memory()?;
    engine.execute(
        "CREATE TABLE account (id BIGINT PRIMARY KEY, mail VARCHAR, plan VARCHAR);
         CREATE MATERIALIZED VIEW customers AS
             SELECT domain(mail) AS customer, tally(plan) AS plans FROM account GROUP BY 1",
    )?;
    for statement in [
        "INSERT INTO account VALUES
             (1, 'ann@Example.org', 'free'), (2, 'bob@example.org', 'pro'), (3, 'cem@acme.com', 'pro')",
        "UPDATE account SET plan = 'pro' WHERE id = 1",
        "DELETE FROM account WHERE id = 3",
    ] {
        engine.execute(statement)?;
        let rows = engine.query("SELECT * FROM customers ORDER BY customer")?;
        println!("{statement}\n{}", pretty_format_batches(&rows)?);
    }
    Ok(())
}
