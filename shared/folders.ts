/** The folder of the bucket for the service's own objects. The paths of callers cannot begin with it. */
export const OWN_FOLDER = '.holdfast';

/** The folder of staged uploads. */
export const STAGING_FOLDER = `${OWN_FOLDER}/staging/`;

/** The folder of the reports of expired records. */
export const REPORTS_FOLDER = `${OWN_FOLDER}/reports/`;
