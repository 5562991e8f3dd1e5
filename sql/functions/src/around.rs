//! Functions around others.

/// Methods of a `ScalarUDFImpl` that are those of the function in its field `others`: names, signature and types. Only what its values are
/// is left to it.
macro_rules! as_others {
    () => {
        fn name(&self) -> &str {
            self.others.name()
        }

        fn aliases(&self) -> &[String] {
            self.others.aliases()
        }

        fn signature(&self) -> &datafusion_expr::Signature {
            self.others.signature()
        }

        fn return_type(
            &self,
            arguments: &[arrow::datatypes::DataType],
        ) -> datafusion_common::Result<arrow::datatypes::DataType> {
            self.others.return_type(arguments)
        }

        fn return_field_from_args(
            &self,
            arguments: datafusion_expr::ReturnFieldArgs<'_>,
        ) -> datafusion_common::Result<arrow::datatypes::FieldRef> {
            self.others.return_field_from_args(arguments)
        }
    };
}

pub(crate) use as_others;
